"""Check the built site: links, pictures, and what a browser without a network shows.

    python docs/check_site.py docs/_build [--browser /usr/bin/chromium]

Every link within the site leads to a page and a place on it that are there; no page
loads anything from elsewhere; no picture is empty. Then a headless browser that cannot
resolve any name opens each page in the width of a phone and of a desk, light and dark:
all mathematics is set and without errors, nothing is wider than the screen, pictures
are shown, and text stands out against its ground.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Seconds for a page; the first ones load MathJax.
PATIENCE = 20.0


class Page(HTMLParser):
    """Links, pictures, loaded files and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.pictures, self.loaded, self.anchors = [], [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Note what a tag refers to."""
        found = dict(attributes)
        for name in ("id", "name"):
            self.anchors.add(found.get(name))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "img" and found.get("src"):
            self.pictures.append(found["src"])
        elif tag == "script" and found.get("src"):
            self.loaded.append(found["src"])
        elif tag in ("iframe", "embed", "source", "video") and found.get("src"):
            self.loaded.append(found["src"])
        elif tag == "object" and found.get("data"):
            self.loaded.append(found["data"])
        elif tag == "link" and found.get("href"):
            if not {"canonical", "alternate"} & set(found.get("rel", "").split()):
                self.loaded.append(found["href"])


def pages_of(site):
    """Return the files of the pages; what is in ``_static`` are parts of them."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def check_files(site):
    """Return what is wrong with links, pictures and loaded files."""
    pages = {path: Page(path.read_text()) for path in pages_of(site)}
    if site / "index.html" not in pages:
        return [f"{site} has no index.html"]
    wrong, looked_at = [], set()
    for path, page in pages.items():
        here = path.relative_to(site)
        for link in [*page.links, *page.pictures, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link not in page.links:
                    wrong.append(f"{here}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = target if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists() or not target.is_relative_to(site):
                wrong.append(f"{here}: {link} is not there")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    wrong.append(f"{here}: no place {link}")
            if link in page.pictures and target.suffix == ".png":
                looked_at.add(target)
    return wrong + [wrong for path in looked_at for wrong in _is_empty(path, site)]


def _is_empty(path, site):
    """Return a complaint of a picture of one colour."""
    import matplotlib.image

    if path.exists():
        colours = matplotlib.image.imread(path)
        if colours.std() < 0.01 or min(colours.shape[:2]) < 16:
            yield f"{path.relative_to(site)}: an empty picture"


# Opens each page once in a frame, and looks at it in two widths and two themes.
LOOK = """
const wait = (promise, seconds) => Promise.race([
  promise, new Promise((_, no) => setTimeout(() => no("too slow"), 1000 * seconds))]);
const light = (colour) => {
  const parts = colour.match(/[\\d.]+/g).map(Number);
  if (parts.length > 3 && parts[3] === 0) return null;
  const [r, g, b] = parts.slice(0, 3).map((value) => {
    value /= 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
function contrast(view, element) {
  const text = light(view.getComputedStyle(element).color);
  for (let ground = element; ground; ground = ground.parentElement) {
    const under = light(view.getComputedStyle(ground).backgroundColor);
    if (under !== null)
      return (Math.max(text, under) + 0.05) / (Math.min(text, under) + 0.05);
  }
  return 21;
}
function scrolls(view, element) {
  for (let each = element.parentElement; each; each = each.parentElement)
    if (!["BODY", "HTML"].includes(each.tagName)
        && view.getComputedStyle(each).overflowX !== "visible") return true;
  return false;
}
async function look(url, patience) {
  const wrong = [];
  const frame = document.createElement("iframe");
  frame.style = "border: 0; width: 390px; height: 844px";
  document.body.replaceChildren(frame);
  const loaded = new Promise((yes) => { frame.onload = yes; });
  const failures = [];
  frame.src = url;
  await wait(loaded, patience);
  const view = frame.contentWindow, page = frame.contentDocument;
  view.addEventListener("error", (event) => failures.push(event.message));
  for (const each of view.performance.getEntriesByType("resource"))
    if (new URL(each.name).host !== location.host) wrong.push(`loads ${each.name}`);
  const plain = page.body.cloneNode(true);
  for (const each of plain.querySelectorAll("pre, code, script, style, .math"))
    each.remove();
  const role = plain.textContent.match(/:[a-z]+:`[^`]*`|\\\\[(][^)]*\\\\[)]/);
  if (role) wrong.push(`not rendered: ${role[0]}`);
  const formulas = [...page.querySelectorAll(".math")].filter(
    (each) => each.tagName !== "MATH" && !each.querySelector(".math"));
  if (formulas.length) {
    if (!view.MathJax || !view.MathJax.startup) return ["no MathJax"];
    await wait(view.MathJax.startup.promise, patience);
    const raw = formulas.filter((each) => !each.querySelector("mjx-container"));
    if (raw.length)
      wrong.push(`${raw.length} formulas as TeX: ${raw[0].textContent}`);
    const failed = page.querySelectorAll("[data-mjx-error], mjx-merror, .mjx-merror");
    if (failed.length) wrong.push(`formula with an error: ${failed[0].textContent}`);
  }
  for (const image of page.images) {
    image.loading = "eager";
    try { await wait(image.decode(), patience); } catch {
      wrong.push(`not shown: ${image.getAttribute("src")}`); }
  }
  for (const width of [390, 1280]) {
    frame.style.width = `${width}px`;
    await new Promise((done) => setTimeout(done, 30));
    for (const each of page.querySelectorAll("mjx-container")) {
      const ends = [...each.querySelectorAll("svg, g")].map(
        (part) => part.getBoundingClientRect().left);
      if (Math.min(...ends) < -1) {
        wrong.push(`formula out of reach on a screen of ${width}: ` +
          each.parentElement.textContent.slice(0, 40));
        break;
      }
    }
    const wide = page.documentElement.scrollWidth;
    if (wide > width + 1) {
      const out = [...page.body.querySelectorAll("*")].filter((each) =>
        each.getBoundingClientRect().right > width + 1 && !scrolls(view, each));
      const who = (each) =>
        `${each.tagName}.${each.className} ${each.textContent.trim().slice(0, 40)}`;
      wrong.push(`${wide} wide on a screen of ${width}: ` +
        out.slice(-2).map(who).join("; "));
    }
  }
  for (const theme of ["light", "dark"]) {
    page.documentElement.dataset.theme = theme;
    for (const each of page.querySelectorAll(
        "main p, main li, main td, main th, main pre span, main h1, main h2, main a")) {
      if (!each.textContent.trim() || !each.getClientRects().length) continue;
      const ratio = contrast(view, each);
      if (ratio < 3) {
        wrong.push(`${theme}: contrast ${ratio.toFixed(1)} of ${each.tagName} ` +
          each.textContent.trim().slice(0, 60));
        break;
      }
    }
  }
  for (const message of failures) wrong.push(`script: ${message}`);
  return wrong;
}
(async () => {
  const found = {};
  const { pages, patience } = await (await fetch("/pages.json")).json();
  for (const url of pages) {
    try { found[url] = await look(url, patience); } catch (error) {
      found[url] = [String(error)]; }
    fetch("/progress", { method: "POST", body: url });
  }
  await fetch("/found", { method: "POST", body: JSON.stringify(found) });
})();
"""


class Server(SimpleHTTPRequestHandler):
    """Serve the site, the page that looks at it, and take what that finds."""

    def log_message(self, *args):
        """Keep silent."""

    def do_GET(self):
        """Answer with what is asked for."""
        made = {
            "/look.html": ("text/html", f"<body><script>{LOOK}</script>"),
            "/pages.json": ("application/json", self.server.pages),
        }.get(urlsplit(self.path).path)
        if made is None:
            return super().do_GET()
        body = made[1].encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{made[0]}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        """Take what was found."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        self.server.alive.set()
        if self.path == "/found":
            self.server.found = json.loads(body)
            self.server.done.set()


def check_in_browser(site, browser):
    """Return what is wrong with the pages as a browser shows them, and their number."""
    pages = [f"/{path.relative_to(site).as_posix()}" for path in pages_of(site)]
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(site)))
    server.pages = json.dumps({"pages": pages, "patience": PATIENCE})
    server.done, server.alive, server.found = threading.Event(), threading.Event(), None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            f"http://127.0.0.1:{server.server_port}/look.html",
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while server.alive.wait(6 * PATIENCE) and not server.done.wait(0.5):
                server.alive.clear()
            process.kill()
    server.shutdown()
    if server.found is None:
        return ["the browser fell silent"], 0
    wrong = [f"{url}: {text}" for url, texts in server.found.items() for text in texts]
    return wrong, len(pages)


def main():
    """Check a site; exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--browser", help="default: Chromium, or Chrome, on the path")
    parser.add_argument("--files-only", action="store_true", help="without a browser")
    options = parser.parse_args()
    site = options.site.resolve()
    wrong = check_files(site)
    browser = options.browser or next(filter(None, map(shutil.which, BROWSERS)), None)
    if options.files_only:
        found, number = [], len(pages_of(site))
    elif browser is None:
        sys.exit("no browser: install chromium, or give its path by --browser")
    else:
        found, number = check_in_browser(site, browser)
    for text in [*wrong, *found]:
        print(text)
    print(f"{number} pages, {len(wrong) + len(found)} complaints")
    sys.exit(bool(wrong or found))


if __name__ == "__main__":
    main()
