# SPDX-License-Identifier: MIT
"""Nothing grows out of sight: lines of files, columns, functions, complexity, and `#if` in src/. An
include guard of src/ is the path of its header."""
import re

import lizard

from checklib import ROOT, code, finish, text, tree, without_comments

SOURCE_LINES = 500
HEADER_LINES = 150
COLUMNS = 100
WITH_COLUMNS = (".c", ".h", ".cpp", ".hpp", ".cmake", ".py", ".sh", ".pml")
FUNCTION_LINES = 60
COMPLEXITY = 12
MAY_CHOOSE_AT_COMPILE_TIME = ("base", "os")


def conditionals(path):
    """Lines of #if and #ifdef other than an include guard and __cplusplus."""
    for number, line in enumerate(without_comments(text(path)).splitlines(), 1):
        match = re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b\s*(.*)", line)
        if match and match[2].strip() not in ("__cplusplus", "defined(__cplusplus)") \
                and not re.fullmatch(r"HAK\w*_H(PP)?", match[2].strip()):
            yield number, line.strip()


def guard(path):
    """A header of src/ whose include guard is not named after its path."""
    named = "HAK_" + re.sub(r"\W", "_", str(path.relative_to("src"))).upper()
    found = re.search(r"^#ifndef (\w+)\n#define \1$", text(path), re.M)
    if found is None or found[1] != named:
        yield f"{path}: its include guard is not {named}"


def wide_lines(path):
    for number, line in enumerate(text(path).splitlines(), 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"


def check(path):
    line_count = len(text(path).splitlines())
    limit = SOURCE_LINES if path.suffix in (".c", ".cpp") else HEADER_LINES
    if line_count > limit:
        yield f"{path}: {line_count} lines, at most {limit}"
    if path.suffix in (".h", ".hpp"):
        yield from guard(path)
    for function in lizard.analyze_file(str(ROOT / path)).function_list:
        where = f"{path}:{function.start_line}: {function.name}"
        if function.length > FUNCTION_LINES:
            yield f"{where} has {function.length} lines, at most {FUNCTION_LINES}"
        if function.cyclomatic_complexity > COMPLEXITY:
            yield f"{where} has complexity {function.cyclomatic_complexity}, at most {COMPLEXITY}"
    if path.parts[1] not in MAY_CHOOSE_AT_COMPILE_TIME:
        for number, line in conditionals(path):
            yield f"{path}:{number}: {line}: only base/ and os/ choose at compile time"


def main():
    sources = code("src")
    files = [path for path in tree() if path.name == "hak" or path.suffix in WITH_COLUMNS]
    problems = [problem for path in sources for problem in check(path)]
    problems += [problem for path in files for problem in wide_lines(path)]
    finish("sizes", f"{len(files)} files", problems)


main()
