"""Mapping files: rules that choose a VM's counters and name them, in TOML or as jmx_exporter's users have them in YAML.

The first rule whose pattern is found in a counter's name decides; what no rule fits is not exported.
"""

from __future__ import annotations

import re
import tomllib

from vmscope.errors import VMScopeError
from vmscope.export import yaml
from vmscope.export.model import COUNTER, GAUGE, HISTOGRAM, MODES, SUM, UNTYPED, Family, Otel
from vmscope.export.names import Labels, legacy, limited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = {"COUNTER": COUNTER, "GAUGE": GAUGE, "UNTYPED": UNTYPED}
_KEYS = ("pattern", "name", "value", "valueFactor", "labels", "help", "type", "mode")
_FILE_KEYS = ("standard", "lowercaseOutputName", "lowercaseOutputLabelNames", "rules")
_GROUP = re.compile(r"\$(\d+)")
_HINT = "docs/export.md shows what stands in a mapping file"


class Mapped:
    """What a rule makes of a counter."""

    __slots__ = ("constant", "factor", "family", "labels", "mode")

    def __init__(self, family: Family, labels: Labels, mode: str, factor: float, constant: float | None) -> None:
        self.family = family
        self.labels = labels
        self.mode = mode
        self.factor = factor
        self.constant = constant


class Rule:
    """One of a file's rules."""

    __slots__ = ("factor", "help", "labels", "mode", "name", "pattern", "type", "value")

    def __init__(self, given: Mapping[str, object], where: str) -> None:
        for key in given:
            if key not in _KEYS:
                raise _wrong(f"{where}: {key!r} is not understood")
        try:
            self.pattern = re.compile(str(given.get("pattern", "")))
            self.factor = float(str(given.get("valueFactor", 1)))
        except (re.error, ValueError) as error:
            raise _wrong(f"{where}: {error}") from None
        self.name = str(given.get("name", ""))
        self.value = str(given.get("value", ""))
        labels = given.get("labels", {})
        if not isinstance(labels, dict):
            raise _wrong(f"{where}: labels are names and values")
        self.labels = {str(name): str(value) for name, value in labels.items()}
        self.help = str(given.get("help", ""))
        if (labels or self.help) and not self.name:
            raise _wrong(f"{where}: labels and help need a name")
        self.type = str(given.get("type", "")).upper()
        self.mode = str(given.get("mode", SUM))
        if self.type not in ("", *TYPES) or self.mode not in MODES:
            raise _wrong(f"{where}: a type is {', '.join(TYPES)}, a mode {', '.join(MODES)}")


class Rules:
    """`standard`: whether the VMs' own metrics are exported besides. Without rules all counters are."""

    def __init__(self, given: Mapping[str, object], where: str = "mapping") -> None:
        for key in given:
            if key not in _FILE_KEYS:
                raise _wrong(f"{where}: {key!r} is not understood")
        rules = given.get("rules", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise _wrong(f"{where}: rules are a list of tables")
        self.rules = [Rule(rule, f"{where}, rule {number}") for number, rule in enumerate(rules, 1)]
        self.standard = _is_true(given.get("standard", True))
        self._lower_name = _is_true(given.get("lowercaseOutputName", False))
        self._lower_labels = _is_true(given.get("lowercaseOutputLabelNames", False))

    def match(self, name: str, labels: Labels, type: str, own: Family) -> Mapped | None:
        """What becomes of a counter of this name, which would be of the family `own`; None: it is not exported."""
        for rule in self.rules:
            found = rule.pattern.search(name)
            if found is not None:
                return self._mapped(rule, found, labels, type, own)
        return None

    def _mapped(self, rule: Rule, found: re.Match[str], labels: Labels, type: str, own: Family) -> Mapped | None:
        def expand(text: str) -> str:
            return _GROUP.sub(lambda group: _group(found, int(group[1])), text)

        constant = None
        if rule.value:
            try:
                constant = float(expand(rule.value)) * rule.factor
            except ValueError:
                return None
        if type != HISTOGRAM:
            type = TYPES[rule.type] if rule.type else type
        name = legacy(expand(rule.name)) if rule.name else own.name
        if type == COUNTER:
            name = name.removesuffix("_total")
        name = name.lower() if self._lower_name else name
        more = {legacy(expand(key)).replace(":", "_"): limited(expand(value)) for key, value in rule.labels.items()}
        if self._lower_labels:
            more = {key.lower(): value for key, value in more.items()}
        all_labels = tuple({**more, **dict(labels)}.items())
        text = limited(expand(rule.help)) if rule.help else own.help
        unit = own.unit if name.endswith(f"_{own.unit}") else ""
        family = Family(name, type, text, unit=unit, otel=Otel(name, ""))
        return Mapped(family, all_labels, rule.mode, rule.factor, constant)


def load(path: str) -> Rules:
    """Reads a mapping file: TOML, or YAML where its name says so."""
    if path.endswith((".yaml", ".yml")):
        return Rules(yaml.load(path), path)
    try:
        with open(path, "rb") as file:
            return Rules(tomllib.load(file), path)
    except OSError as error:
        raise VMScopeError(f"{path} cannot be read: {error.strerror}", hint="name a file that can be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(f"{path}: {error}") from None


def _group(found: re.Match[str], number: int) -> str:
    try:
        return found[number] or ""
    except IndexError:
        return ""


def _is_true(value: object) -> bool:
    return value is True or value == "true"


def _wrong(what: str) -> VMScopeError:
    return VMScopeError(what, hint=_HINT)
