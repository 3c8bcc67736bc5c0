# SPDX-License-Identifier: MIT
"""build.py: the documents as a site in out/site, of which no link is broken.

The pages are laid out as in the tree, so that links between documents lead to the same places.
Files that a document links to are copied, a linked folder becomes a page that lists its pages, and
the manuals are translated by mandoc. Exit status 1: a document is in no menu, a link of the pages
or of the site leads nowhere, or a page would load something from another host.
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/site"
WORK = ROOT / "out/site-work"
PAGES = WORK / "pages"
SITE = ROOT / "out/site"
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def slug(title, separator):
    """The name of a heading as GitHub makes it, so that links to headings work in both places."""
    kept = re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", title).strip().lower())
    return kept.replace(" ", separator)


def title_of(document):
    """The first heading of a document."""
    return re.search(r"^# (.*)$", document.read_text(), re.M)[1]


def documents():
    """All documents of the tree, relative to the root."""
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in ("out", "target")
                          and not name.startswith("."))
        for file in sorted(files):
            path = pathlib.Path(folder, file)
            if path.suffix == ".md" and not path.is_symlink():
                yield path.relative_to(ROOT)


def copied(name):
    """A file that pages refer to, at its place among the pages."""
    place = PAGES / name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, place)
    if place.suffix == ".html":
        for target in Links(place).loads:
            copied(name.parent / target)


def folder_page(name):
    """A page that lists the documents of a folder."""
    place = PAGES / name / "README.md"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        listed = [f"* [{title_of(path)}]({path.name})"
                  for path in sorted((ROOT / name).glob("*.md"))]
        place.write_text("# Decisions\n\n" + "\n".join(listed) + "\n")


def write_page(name):
    """One document, with what it links to."""
    def lead(match):
        before, target, anchor, after = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        linked = (ROOT / name.parent / target).resolve()
        if not linked.is_relative_to(ROOT) or not linked.exists():
            return match[0]
        if linked.is_dir():
            folder_page(linked.relative_to(ROOT))
            return f"{before}{target}/README.md{anchor or ''}{after}"
        if linked.suffix != ".md":
            copied(linked.relative_to(ROOT))
        return match[0]

    place = PAGES / name
    place.parent.mkdir(parents=True, exist_ok=True)
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", (ROOT / name).read_text(), flags=re.M | re.S)
    alone = "---\nhide: [navigation]\n---\n" if name == pathlib.Path("README.md") else ""
    place.write_text(alone + "".join(part if part.startswith("`") else LINK.sub(lead, part)
                                     for part in parts))


def write_manual(path):
    """One manual, as mandoc reads it."""
    place = PAGES / "man" / f"{path.name}.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = subprocess.run(["mandoc", "-T", "markdown", path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    text = "\n".join(text.splitlines()[1:])
    place.write_text(f"# {path.stem}({path.suffix[1:]})\n\n" +
                     re.sub(r"^# (.*)$", lambda match: f"## {match[1].capitalize()}", text,
                            flags=re.M) + "\n")


def write_pages():
    """All pages and the settings."""
    shutil.rmtree(WORK, ignore_errors=True)
    for name in documents():
        write_page(name)
    for path in sorted((ROOT / "docs/man").iterdir()):
        write_manual(path)
    copied("tools/site/site.css")
    lines = [f"          - {path.relative_to(ROOT)}" for path in sorted(ROOT.glob("docs/adr/*.md"))]
    if (PAGES / "docs/adr/README.md").exists():
        lines.insert(0, "          - docs/adr/README.md")
    (WORK / "mkdocs.yml").write_text((HERE / "mkdocs.yml").read_text() + "\n".join(lines) + "\n")


class Links(html.parser.HTMLParser):
    """Where the links of a page lead, what it loads, and the names that lead into it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names = [], [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.names |= {of[key] for key in ("id", "name") if of.get(key)}
        if tag in ("script", "img", "iframe") and of.get("src"):
            self.loads.append(of["src"])
        elif tag == "link" and of.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(of["href"])
        elif tag == "a" and of.get("href"):
            self.links.append(of["href"])


def check_site():
    """What is wrong with the links of the built site: a list of sentences."""
    found = {path: Links(path) for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"}
    problems = []
    for path, page in found.items():
        where = path.relative_to(SITE)
        problems += [f"{where} loads {target}" for target in page.loads if "//" in target]
        for target in page.links + page.loads:
            if re.match(r"[a-z]+:|//", target):
                continue
            target, _, anchor = target.partition("#")
            leads = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
            leads = leads / "index.html" if leads.is_dir() else leads
            if not leads.exists():
                problems.append(f"{where} links to {target}, which does not exist")
            elif leads in found and urllib.parse.unquote(anchor) not in found[leads].names:
                problems.append(f"{where} links to #{anchor} of {target}, which does not exist")
    return problems


def main():
    """Builds and checks."""
    write_pages()
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict",
                           "--config-file", WORK / "mkdocs.yml", "--site-dir", SITE],
                          env={**os.environ, "PYTHONPATH": str(HERE),
                               "PYTHONDONTWRITEBYTECODE": "1", "NO_MKDOCS_2_WARNING": "1"},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    problems = done.stdout.splitlines() if done.returncode else check_site()
    for problem in problems:
        print(f"site: {problem}", file=sys.stderr)
    if not problems:
        print(f"{SITE}/index.html: {len(list(SITE.rglob('*.html')))} pages. "
              "The search needs a server: python3 -m http.server -d out/site")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
