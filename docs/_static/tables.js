// Helps wide tables onto narrow screens; wide.css does the rest.

// Each cell but the first of a row gets its column's heading, which is shown where a row becomes a block.
function nameCells(table) {
  const headings = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, column) => {
      if (column > 0 && headings[column] && cell.textContent.trim()) cell.dataset.heading = headings[column];
    });
  }
}

// A long name may break behind a dot, an underscore, a slash or a comma.
function letBreak(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    const parts = node.textContent.split(/(?<=[._/,:]+)(?=[A-Za-z_<])/);
    node.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
  }
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("article table.docutils").forEach(nameCells);
  document.querySelectorAll("article td, article h2, article h3").forEach(letBreak);
});
