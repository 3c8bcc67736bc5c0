# SPDX-License-Identifier: MIT
"""What the checks of ./hak check find. If this fails, a check may say ok of
whatever is in the tree."""
from pathlib import Path

import check_docs
import pytest

FILES = [Path("src/os/fault.c"), Path("tests/preload/top_preload.py"), Path("hak")]


@pytest.mark.parametrize("line, missing", [
    ("/* fault.c: what fails */", None), ("/* os/fault.c, src/os/fault.c */", None),
    ("/* fault.h */", "fault.h"), ("// see base/fault.c.", "base/fault.c"),
    ("/* Tests  tests/preload/top_preload.py, tests/preload/gone.py */", "tests/preload/gone.py"),
    ("/* <asm/sigcontext.h>, \"made.h\", NAME.c, guarded_*_test.c, unistd.hpp8 */", None),
    ('const char *text = "/* gone.c */";', None), ("#include \"gone.h\"", None),
    ("char quote = '\"'; /* gone.pml */ char other = '\"';", "gone.pml"),
])
def test_a_comment_names_files_that_exist(tmp_path, monkeypatch, line, missing):
    (tmp_path / "it.c").write_text(f"int a;\n{line}\n")
    monkeypatch.setattr(check_docs, "text", lambda path: (tmp_path / path).read_text())
    found = list(check_docs.named_files([Path("it.c")], FILES))
    assert found == ([f"it.c:2: a comment names {missing}, which does not exist"] if missing
                     else [])
