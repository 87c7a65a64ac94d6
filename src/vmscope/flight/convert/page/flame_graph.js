"use strict";
{
  const ROW = 18, LEAST = 0.5, LETTER = 6.7, FONT = "11px ui-monospace, Menlo, Consolas, monospace";
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("profile").textContent);
  const names = data.names.concat(data.trees.map(tree => tree.thread), "all");
  const kinds = data.kinds + "s".repeat(data.trees.length + 1);
  const FRAMES = data.names.length, ROOT = names.length - 1;
  const SIDES = data.diff ? 2 : 1;  // weights of a node: after and before, or one
  const canvas = $("graph"), view = $("view"), pen = canvas.getContext("2d");

  // -- the tree that is shown: arrays by node, a parent before its children

  let tree, zoom = 0, focus = 0, hover = -1, matches = null, rootOnTop = false, colours, side = 0;

  function build(shown) {
    const frame = [ROOT], parent = [-1], own = [[0], [0]], known = new Map();
    const node = (above, name) => {
      const key = above * names.length + name;
      let found = known.get(key);
      if (found === undefined) {
        known.set(key, found = frame.length);
        frame.push(name);
        parent.push(above);
        own[0].push(0);
        own[1].push(0);
      }
      return found;
    };
    data.trees.forEach((each, number) => {
      if (shown >= 0 && shown !== number) return;
      // each node: its frame, how many children it has, its own weights; a node's children follow it
      const nodes = each.nodes, open = [[shown === -2 ? node(0, FRAMES + number) : 0, nodes[1]]];
      const take = (to, at) => { for (let s = 0; s < SIDES; s++) own[s][to] += nodes[at + 2 + s]; };
      take(open[0][0], 0);
      for (let at = 2 + SIDES; at < nodes.length; at += 2 + SIDES) {
        while (!open[open.length - 1][1]) open.pop();
        const above = open[open.length - 1];
        above[1]--;
        const here = node(above[0], nodes[at]);
        take(here, at);
        open.push([here, nodes[at + 1]]);
      }
    });
    const count = frame.length, totals = own.map(each => Float64Array.from(each));
    for (let i = count - 1; i > 0; i--) for (const total of totals) total[parent[i]] += total[i];
    return arrange({frame, parent, own, totals, count});
  }

  function arrange(made) {
    const {count, parent, totals} = made, first = new Int32Array(count + 1), children = new Int32Array(count);
    const width = totals[side], x = new Float64Array(count), depth = new Int32Array(count);
    for (let i = 1; i < count; i++) first[parent[i] + 1]++;
    for (let i = 0; i < count; i++) first[i + 1] += first[i];
    const next = first.slice();
    for (let i = 1; i < count; i++) children[next[parent[i]]++] = i;
    let deepest = 0;
    for (let i = 0; i < count; i++) {
      const row = children.subarray(first[i], first[i + 1]);
      row.sort((a, b) => width[b] - width[a] || a - b);
      let at = x[i];
      for (const child of row) {
        x[child] = at;
        at += width[child];
        depth[child] = depth[i] + 1;
        if (width[child] > 0) deepest = Math.max(deepest, depth[child]);
      }
    }
    return Object.assign(made, {first, children, width, x, depth, deepest});
  }

  const within = node => tree.children.subarray(tree.first[node], tree.first[node + 1]);
  function path(node) {
    const found = [];
    for (; node >= 0; node = tree.parent[node]) found.push(node);
    return found.reverse();
  }

  // -- text

  const percent = share => (share * 100).toFixed(share && share < 0.0995 ? 2 : 1) + "%";
  function amount(value) {
    if (data.unit === "bytes") {
      const units = ["B", "KiB", "MiB", "GiB", "TiB"];
      let at = 0;
      for (; value >= 1024 && at < 4; at++) value /= 1024;
      return (at ? value.toFixed(1) : value) + " " + units[at];
    }
    if (data.unit === "nanoseconds") {
      if (value >= 1e9) return (value / 1e9).toFixed(2) + " s";
      return value >= 1e6 ? (value / 1e6).toFixed(2) + " ms" : (value / 1e3).toFixed(1) + " µs";
    }
    return value.toLocaleString("en") + " " + (value === 1 ? data.unit.replace(/s$/, "") : data.unit);
  }
  const share = (node, s) => tree.totals[s][0] ? tree.totals[s][node] / tree.totals[s][0] : 0;
  const change = node => share(node, 0) - share(node, 1);
  const points = value => (value < 0 ? "−" : "+") + Math.abs(value * 100).toFixed(2) + " points";
  function describe(node) {
    const name = names[tree.frame[node]], own = tree.own[side][node], total = tree.width[node];
    if (data.diff) {
      return `${name}\n${percent(share(node, 1))} before, ${percent(share(node, 0))} after: ${points(change(node))}`;
    }
    const zoomed = zoom ? `, ${percent(total / tree.width[zoom])} of the zoomed` : "";
    return `${name}\n${percent(share(node, 0))}, ${amount(total)}${zoomed}; itself ${amount(own)}`;
  }

  // -- drawing

  function readColours() {
    const style = getComputedStyle(document.documentElement), of = name => style.getPropertyValue(name).trim();
    colours = {
      back: of("--back"), text: of("--on-frame"), match: of("--match"), focus: of("--focus"), neutral: of("--neutral"),
      saturation: of("--saturation"), lightness: of("--lightness"), more: of("--more"), less: of("--less"),
      cache: [],
    };
  }
  const HUES = {c: [18, 36], n: [190, 30], t: [95, 40]};
  function colour(node) {
    if (data.diff) {
      const by = change(node), strength = Math.min(1, Math.sqrt(Math.abs(by) * 4));
      if (strength < 0.05) return colours.neutral;
      return `color-mix(in srgb, ${by > 0 ? colours.more : colours.less} ${Math.round(strength * 100)}%, ${colours.neutral})`;
    }
    const frame = tree.frame[node];
    if (!colours.cache[frame]) {
      const range = HUES[kinds[frame]], name = names[frame];
      let hash = 7;
      const end = Math.max(name.lastIndexOf("."), 8);
      for (let i = 0; i < Math.min(name.length, end); i++) hash = hash * 31 + name.charCodeAt(i) >>> 0;
      colours.cache[frame] = range
        ? `hsl(${range[0] + hash % range[1]} ${colours.saturation} ${colours.lightness})` : colours.neutral;
    }
    return colours.cache[frame];
  }

  const rows = () => tree.deepest + 1;
  const height = () => Math.max(rows() * ROW, view.clientHeight);
  const top = depth => rootOnTop ? depth * ROW : height() - (depth + 1) * ROW;
  function visible(draw) {
    const scale = canvas.clientWidth / (tree.width[zoom] || 1);
    for (const node of path(zoom)) draw(node, 0, canvas.clientWidth);
    const left = [zoom];
    while (left.length) {
      for (const child of within(left.pop())) {
        const wide = tree.width[child] * scale;
        if (wide < LEAST) break;  // the widest come first
        draw(child, (tree.x[child] - tree.x[zoom]) * scale, wide);
        left.push(child);
      }
    }
  }

  function paint() {
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.fillStyle = colours.back;
    pen.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const from = view.scrollTop, to = from + view.clientHeight;
    visible((node, x, wide) => {
      const y = top(tree.depth[node]);
      if (y + ROW < from || y > to) return;
      const matched = matches && matches[tree.frame[node]];
      pen.globalAlpha = tree.depth[node] < tree.depth[zoom] || matches && !matched ? 0.45 : 1;
      pen.fillStyle = matched ? colours.match : colour(node);
      pen.fillRect(x, y - from, Math.max(wide - 0.7, LEAST), ROW - 1);
      const letters = Math.floor((wide - 6) / LETTER);
      if (letters > 2) {
        pen.globalAlpha = 1;
        pen.fillStyle = matched ? colours.back : colours.text;
        let name = names[tree.frame[node]];
        if (name.length > letters) name = name.slice(0, letters - 1) + "…";
        pen.fillText(name, x + 3, y - from + ROW / 2);
      }
      if (node === hover || node === focus && document.activeElement === canvas) {
        pen.globalAlpha = 1;
        pen.strokeStyle = colours.focus;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, y - from + 1, Math.max(wide - 2.7, 1), ROW - 3);
      }
    });
    pen.globalAlpha = 1;
  }
  let asked = 0;
  function draw() {
    asked = asked || requestAnimationFrame(() => { asked = 0; paint(); });
  }

  function layout() {
    $("room").style.height = height() + "px";
    canvas.style.width = view.clientWidth + "px";
    canvas.style.height = view.clientHeight + "px";
    canvas.width = Math.round(view.clientWidth * devicePixelRatio);
    canvas.height = Math.round(view.clientHeight * devicePixelRatio);
    draw();
  }
  const toRoot = () => { view.scrollTop = rootOnTop ? 0 : height(); };

  // -- what is looked at

  function tell(node) {
    $("current").textContent = describe(node).replace("\n", ": ");
  }
  function zoomTo(node) {
    zoom = focus = node;
    $("reset").disabled = !zoom;
    tell(node);
    searched();
    show(node);
    draw();
  }
  function show(node) {
    const y = top(tree.depth[node]);
    if (y < view.scrollTop || y + ROW > view.scrollTop + view.clientHeight) {
      view.scrollTop = y - (rootOnTop ? ROW : view.clientHeight - 2 * ROW);
    }
  }
  function walk(node) {
    if (node === undefined || node < 0 || !tree.width[node]) return;
    focus = node;
    if (!path(node).includes(zoom) && !path(zoom).includes(node)) zoomTo(tree.parent[node]);
    focus = node;
    tell(node);
    show(node);
    draw();
  }
  function beside(by) {
    const row = [];
    visible((node, x) => { if (tree.depth[node] === tree.depth[focus]) row.push([x, node]); });
    row.sort((a, b) => a[0] - b[0]);
    const at = row.findIndex(each => each[1] === focus);
    return at < 0 ? undefined : (row[at + by] || [])[1];
  }
  function under(event) {
    const box = canvas.getBoundingClientRect(), y = event.clientY - box.top + view.scrollTop;
    const depth = Math.floor(rootOnTop ? y / ROW : (height() - y) / ROW), above = path(zoom);
    if (depth < above.length) return depth < 0 ? -1 : above[depth];
    const x = tree.x[zoom] + (event.clientX - box.left) / canvas.clientWidth * tree.width[zoom];
    let node = zoom;
    while (node >= 0 && tree.depth[node] < depth) {
      let inside = -1;
      for (const child of within(node)) {
        if (x >= tree.x[child] && x < tree.x[child] + tree.width[child]) { inside = child; break; }
      }
      node = inside;
    }
    return node;
  }

  // -- search

  function search() {
    const text = $("search").value, box = $("search");
    box.removeAttribute("aria-invalid");
    matches = null;
    if (text) {
      try {
        const wanted = new RegExp(text, /[A-Z]/.test(text) ? "" : "i");
        matches = names.map((name, i) => i < FRAMES && wanted.test(name));
      } catch {
        box.setAttribute("aria-invalid", "true");
      }
    }
    searched();
    draw();
  }
  function searched() {
    let found = 0;
    if (matches) {
      const left = [zoom];
      while (left.length) {
        const node = left.pop();
        if (matches[tree.frame[node]]) found += tree.width[node];
        else for (const child of within(node)) left.push(child);
      }
    }
    const whole = tree.width[zoom] || 1;
    $("matched").textContent = matches ? `${percent(found / whole)} matches`
      : $("search").hasAttribute("aria-invalid") ? "not a regular expression" : "";
  }
  function nextMatch(by) {
    if (!matches) return;
    const found = [];
    visible((node, x) => { if (matches[tree.frame[node]]) found.push([tree.depth[node], x, node]); });
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const at = found.findIndex(each => each[2] === focus);
    if (found.length) walk(found[(at + by + found.length + (at < 0 && by < 0)) % found.length][2]);
  }

  // -- the table of functions

  function list() {
    const own = [0, 1].map(() => new Float64Array(FRAMES)), total = [0, 1].map(() => new Float64Array(FRAMES));
    const open = new Int32Array(names.length), left = [0];
    while (left.length) {
      const node = left.pop();
      if (node < 0) { open[tree.frame[~node]]--; continue; }
      const frame = tree.frame[node];
      for (let s = 0; s < SIDES; s++) {
        if (frame < FRAMES) {
          own[s][frame] += tree.own[s][node];
          if (!open[frame]) total[s][frame] += tree.totals[s][node];
        }
      }
      open[frame]++;
      left.push(~node);
      for (const child of within(node)) left.push(child);
    }
    const whole = tree.totals.map(each => each[0] || 1);
    const by = (of, i) => of[0][i] / whole[0] - (data.diff ? of[1][i] / whole[1] : 0);
    const order = [...Array(FRAMES).keys()].filter(i => total[0][i] || total[1][i]);
    order.sort((a, b) => Math.abs(by(own, b)) - Math.abs(by(own, a)) || Math.abs(by(total, b)) - Math.abs(by(total, a)));
    const table = $("functions").querySelector("tbody"), rows = order.slice(0, 100).map(i => {
      const row = document.createElement("tr"), link = document.createElement("button");
      for (const of of [own, total]) {
        row.append(cell("td", data.diff ? points(by(of, i)) : percent(by(of, i))));
      }
      link.type = "button";
      link.textContent = names[i];
      link.addEventListener("click", () => {
        $("search").value = "^" + names[i].replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$";
        search();
      });
      row.append(cell("td", link));
      return row;
    });
    table.replaceChildren(...rows);
  }
  function cell(kind, content) {
    const made = document.createElement(kind);
    made.append(content);
    return made;
  }

  // -- controls

  function choose() {
    tree = build(Number($("threads").value));
    zoom = focus = 0;
    $("reset").disabled = true;
    hover = -1;
    layout();
    toRoot();
    search();
    if ($("functions").open) list();
    tell(0);
  }

  const option = (value, text) => {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = text;
    return made;
  };
  $("about").textContent = data.about;
  $("threads").append(option(-1, "all together"));
  if (data.trees.length > 1) {
    $("threads").append(option(-2, "each by itself"), ...data.trees.map((each, i) => option(i, each.thread)));
  }
  $("threads").addEventListener("change", choose);
  $("width-label").hidden = !data.diff;
  $("width").addEventListener("change", () => { side = Number($("width").value); choose(); });
  const head = document.createElement("tr");
  head.append(...["itself", "in all", "function"].map(text => cell("th", text)));
  $("functions").querySelector("thead").append(head);
  $("functions").addEventListener("toggle", () => { if ($("functions").open) list(); layout(); });
  $("controls").addEventListener("submit", event => event.preventDefault());
  $("search").addEventListener("input", search);
  $("reset").addEventListener("click", () => zoomTo(0));
  $("direction").addEventListener("click", () => {
    rootOnTop = !rootOnTop;
    $("direction").setAttribute("aria-pressed", rootOnTop);
    toRoot();
    draw();
  });
  view.addEventListener("scroll", draw);
  new ResizeObserver(layout).observe(view);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });

  canvas.addEventListener("click", event => { const node = under(event); if (node >= 0) zoomTo(node); });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  canvas.addEventListener("pointermove", event => {
    const node = event.pointerType === "mouse" ? under(event) : -1, tip = $("tip");
    if (node !== hover) draw();
    hover = node;
    tip.hidden = node < 0;
    if (node < 0) return;
    tip.textContent = describe(node);
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
    const below = event.clientY + 16;
    tip.style.top = (below + tip.offsetHeight < innerHeight ? below : event.clientY - tip.offsetHeight - 10) + "px";
  });
  canvas.addEventListener("pointerleave", () => { hover = -1; $("tip").hidden = true; draw(); });
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const inwards = () => walk(within(focus)[0]), outwards = () => walk(tree.parent[focus]);
    const keys = {
      ArrowUp: rootOnTop ? outwards : inwards, ArrowDown: rootOnTop ? inwards : outwards,
      ArrowLeft: () => walk(beside(-1)), ArrowRight: () => walk(beside(1)), Home: () => walk(0),
      Enter: () => zoomTo(focus), Backspace: () => zoomTo(Math.max(0, tree.parent[zoom])), Escape: () => zoomTo(0),
      n: () => nextMatch(1), N: () => nextMatch(-1),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.target.matches("input, select")) return;
    $("search").focus();
    event.preventDefault();
  });

  readColours();
  choose();
}
