# SPDX-License-Identifier: MIT
"""Single changes to a C file, found in clang's syntax tree.

    relation    < to <=, == to !=, and their like
    arithmetic  + to -, * to /, << to >>, & to |, also where they assign
    logic       && to ||, and a ! left out
    removed     a statement that is a call or an assignment
    constant    one more
    condition   that of an if is always true

What a check (hak_assert, hak_audit) computes is left alone: only hak_require is behaviour.
"""
import ctypes
import dataclasses
import hashlib
import pathlib
import re

import clang_tidy
from clang import cindex

from checklib import ROOT

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|",
              "|": "&", "^": "&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=",
              "&=": "|=", "^=": "|=", "<<=": ">>=", ">>=": "<<="}
LOGIC = {"&&": "||", "||": "&&"}
CHECK = re.compile(rb"\bhak_(?:assert|audit|static_assert)\s*\(")
CALL = re.compile(rb"(?:\(void\))?\s*(?!(?:if|for|while|switch|return)\b)[A-Za-z_]\w*\(")
NUMBER = re.compile(rb"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)")
DEFINED = re.compile(rb"^#define \w+ (?:0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*$", re.M)
# Clang's own headers, which libclang's package lacks.
RESOURCES, = pathlib.Path(clang_tidy.__file__).parent.glob("data/lib/clang/*")
KIND = cindex.CursorKind


@dataclasses.dataclass(frozen=True)
class Change:
    file: str     # relative to the root
    start: int    # what bytes of the file are replaced
    end: int
    text: bytes   # by what
    kind: str
    line: int
    code: str     # the line as it is, without what surrounds it: names the change in the record
    change: str   # in words
    turn: int     # of the changes with the same words in lines of the same text

    @property
    def folder(self):
        return self.file.split("/")[1]

    @property
    def name(self):
        """Stays the same while other lines of the file change."""
        return (self.file, self.code, self.change, self.turn)

    def rank(self, seed):
        """Its place in the order of that seed, which does not depend on other changes."""
        return hashlib.sha256(repr((seed, *self.name)).encode()).digest()

    def applied_to(self, source):
        """The changed source; line numbers stay."""
        gone = source[self.start:self.end]
        return source[:self.start] + self.text + b"\n" * gone.count(b"\n") + source[self.end:]


def offset(location):
    """Where in its file; of a macro's argument, where the argument stands."""
    place = ctypes.c_uint()
    cindex.conf.lib.clang_getFileLocation(location, None, None, None, ctypes.byref(place))
    return place.value


def span(cursor):
    return offset(cursor.extent.start), offset(cursor.extent.end)


def check_ranges(source):
    """The parts of the file that are checks."""
    ranges = []
    for found in CHECK.finditer(source):
        depth, at = 1, found.end()
        while depth > 0:
            depth += {ord("("): 1, ord(")"): -1}.get(source[at], 0)
            at += 1
        ranges.append(range(found.start(), at))
    return ranges


class Finder:
    """Collects (start, end, replacement, kind, words) of one file."""

    def __init__(self, source):
        self.source = source
        self.checks = check_ranges(source)
        self.found = {}

    def add(self, start, end, text, kind, words):
        if not any(start in check for check in self.checks):
            self.found.setdefault((start, end, text), (kind, words))

    def swap(self, start, end, text, kind):
        old = self.source[start:end].decode()
        self.add(start, end, text.encode(), kind, f"{old} to {text}")

    def operator(self, left, right):
        start, end = span(left)[1], span(right)[0]
        between = self.source[start:end]
        word = between.strip().decode(errors="replace")
        start += len(between) - len(between.lstrip())
        for kind, table in (("relation", RELATIONS), ("arithmetic", ARITHMETIC), ("logic", LOGIC)):
            if start < end and word in table:
                self.swap(start, start + len(word), table[word], kind)

    def statement(self, cursor):
        """A statement of its own: a call whose value is not used, or an assignment."""
        start, end = span(cursor)
        text = self.source[start:end]
        changes = cursor.kind in (KIND.BINARY_OPERATOR, KIND.COMPOUND_ASSIGNMENT_OPERATOR,
                                  KIND.UNARY_OPERATOR)
        is_call = CALL.match(text) and text.endswith(b")") and cursor.kind != KIND.DECL_STMT
        if changes or is_call:
            words = " ".join(text.decode().split())
            self.add(start, end, b"", "removed", f"{words} removed")

    def condition(self, cursor):
        start, end = span(cursor)
        words = " ".join(self.source[start:end].decode().split())
        if (self.source[:start].rstrip().endswith(b"(") and words not in ("0", "1")
                and self.source[end:].lstrip().startswith(b")")):
            self.add(start, end, b"1", "condition", f"{words} is taken as true")

    def literal(self, start):
        number = NUMBER.match(self.source, start)
        if number and not re.match(rb"[\w.]", self.source[number.end():number.end() + 1]):
            text = f"{int(number[1], 0) + 1}{number[2].decode()}"
            self.swap(start, number.end(), text, "constant")

    def visit(self, cursor):
        children = list(cursor.get_children())
        if cursor.kind in (KIND.BINARY_OPERATOR, KIND.COMPOUND_ASSIGNMENT_OPERATOR):
            self.operator(*children)
        elif cursor.kind == KIND.UNARY_OPERATOR:
            start = span(cursor)[0]
            if self.source[start:start + 1] == b"!":
                self.add(start, start + 1, b"", "logic", "! removed")
        elif cursor.kind == KIND.INTEGER_LITERAL:
            self.literal(span(cursor)[0])
        elif cursor.kind == KIND.COMPOUND_STMT:
            for child in children:
                self.statement(child)
        elif cursor.kind == KIND.IF_STMT:
            self.condition(children[0])
            for child in children[1:]:
                self.statement(child)
        elif cursor.kind in (KIND.FOR_STMT, KIND.WHILE_STMT) and children:
            self.statement(children[-1])
        for child in children:
            self.visit(child)


def changes_of(file, words):
    """All changes of a file of src/; words: how the build compiles it."""
    flags = [word for word in words if re.match(r"-[DIU]|-std=", word)]
    unit = cindex.Index.create().parse(str(ROOT / file), [*flags, f"-resource-dir={RESOURCES}"])
    problems = [str(said) for said in unit.diagnostics if said.severity >= cindex.Diagnostic.Error]
    if problems:
        raise SystemExit("mutants: clang cannot read this:\n" + "\n".join(problems))
    source = (ROOT / file).read_bytes()
    finder = Finder(source)
    for cursor in unit.cursor.get_children():
        if cursor.location.file and cursor.location.file.name == str(ROOT / file):
            finder.visit(cursor)
    for found in DEFINED.finditer(source):
        finder.literal(found[0].rindex(b" ") + 1 + found.start())
    changes, turns = [], {}
    for (start, end, text), (kind, said) in sorted(finder.found.items()):
        line = source.count(b"\n", 0, start) + 1
        code = source.split(b"\n")[line - 1].decode().strip()
        turn = turns[code, said] = turns.get((code, said), 0) + 1
        changes.append(Change(file, start, end, text, kind, line, code, said, turn))
    return changes
