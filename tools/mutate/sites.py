"""Where a C++ source can be changed by one small mistake, and how."""

import dataclasses
import re

# What holds no code: comments, strings, characters (not the ' of 1'000) and preprocessor lines.
_OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE)

# Dropping these changes no correct program: a check that holds, memory that is asked for early.
_WITHOUT_EFFECT = re.compile(r"FUSELAGE_D?CHECK|\.reserve\(|\.shrink_to_fit\(")

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_SIGN = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "*": "/", "/": "*"}


def _integers(text):
    value = int(text)
    return [str(other) for other in (value + 1, value - 1) if other >= 0]


# Formatted code has spaces around binary operators, and none in `T<int>`, `T* x`, `T&& x`, `x->y` or `<<`.
# kind: (what is replaced, its replacements)
_OPERATORS = {
    "comparison": (re.compile(r"(?<= )(?:[<>=!]=|[<>])(?= )"), lambda text: [_NEGATED[text]]),
    "boundary": (re.compile(r"(?<= )[<>]=?(?= )"), lambda text: [_MOVED[text]]),
    "sign": (re.compile(r"(?<= )(?:[-+]=|[-+*/])(?= )"), lambda text: [_SIGN[text]]),
    "negation": (re.compile(r"(?<![-\w)])[-!](?=[\w(])"), lambda text: [""]),
    "logic": (re.compile(r"(?<= )(?:&&|\|\|)(?=\s)"), lambda text: ["||" if text == "&&" else "&&"]),
    "integer": (re.compile(r"(?<![\w.'])(?<!\de[-+])\d+(?![\w.'])"), _integers),
    "boolean": (re.compile(r"\b(?:true|false)\b"), lambda text: ["false" if text == "true" else "true"]),
    # On one line, after a complete one: a call, an assignment, a jump, a guard; no declaration, no `return`.
    "statement": (re.compile(r"[;{}]\s*\n[ ]+(?!return\b|using\b|case\b)(?P<replaced>if \(.*|for \(.*|continue|break|"
                             r"(?:\+\+|--|\*)?[\w.:>\[\]()-]+(?:\(.*\)| [-*/|&^+]?= .*)?)(?=;\s*\n)"),
                  lambda text: [""]),
}


@dataclasses.dataclass(frozen=True)
class Site:
    """Replacing source[begin:end] by `text` is one mistake of a kind."""
    kind: str
    begin: int
    end: int
    text: str

    def apply(self, source):
        return source[:self.begin] + self.text + source[self.end:]


def without_opaque(source):
    """The source with blanks for what holds no code, of the same length."""
    return _OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def sites(source):
    """All sites, in order."""
    code = without_opaque(source)
    found = []
    for kind, (pattern, replacements) in _OPERATORS.items():
        group = "replaced" if "replaced" in pattern.groupindex else 0
        for match in pattern.finditer(code):
            if kind == "statement" and _WITHOUT_EFFECT.search(match[group]):
                continue
            found += [Site(kind, *match.span(group), text) for text in replacements(match[group])]
    return sorted(found, key=lambda site: (site.begin, site.kind, site.text))
