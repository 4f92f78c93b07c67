"""The check of the site finds what is wrong with one."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
HEAD = "<!doctype html><meta name=viewport content='width=device-width'>"


@pytest.fixture
def check_site():
    sys.path.insert(0, str(DOCS))
    try:
        import check_site
    finally:
        sys.path.remove(str(DOCS))
    return check_site


@pytest.fixture
def site(tmp_path):
    """Return a function that writes pages."""
    pytest.importorskip("matplotlib")
    import matplotlib.image

    noise = np.random.default_rng(0).random((40, 40, 3))
    matplotlib.image.imsave(tmp_path / "full.png", noise)
    matplotlib.image.imsave(tmp_path / "empty.png", np.ones((40, 40, 3)))

    def write(body, other="<p id='here'>text</p>"):
        (tmp_path / "a.html").write_text(f"{HEAD}<main>{body}</main>")
        (tmp_path / "index.html").write_text(f"{HEAD}<main>first</main>")
        (tmp_path.parent / "outside.html").write_text(HEAD)
        (tmp_path / "b.html").write_text(f"{HEAD}<main>{other}</main>")
        return tmp_path

    return write


GOOD = "<a href='b.html#here'>b</a> <a href='https://x.org'>x</a> <img src='full.png'>"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (GOOD, None),
        ("<a href='c.html'>c</a>", "c.html is not there"),
        ("<a href='b.html#there'>b</a>", "no place b.html#there"),
        ("<a href='#there'>b</a>", "no place #there"),
        ("<img src='none.png'>", "none.png is not there"),
        ("<img src='empty.png'>", "empty.png: an empty picture"),
        ("<script src='https://x.org/a.js'></script>", "loads https://x.org/a.js"),
        ("<link rel=stylesheet href='//x.org/a.css'>", "loads //x.org/a.css"),
        ("<img src='https://x.org/a.png'>", "loads https://x.org/a.png"),
        ("<a href='../outside.html'>o</a>", "../outside.html is not there"),
        ("<iframe src='https://x.org/'></iframe>", "loads https://x.org/"),
        ("<object data='none.svg'></object>", "none.svg is not there"),
        ("<link rel='shortcut icon' href='none.ico'>", "none.ico is not there"),
    ],
)
def test_files(body, complaint, check_site, site):
    found = check_site.check_files(site(body))
    assert [complaint in text for text in found] == ([True] if complaint else [])


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
MATH = "<span class='math'>\\(x^2\\)</span>"
# Sets what a formula is, as MathJax does.
SETS = """<script>
const loaded = new Promise((done) => window.addEventListener("load", done));
window.MathJax = {startup: {promise: loaded.then(() => {
  for (const each of document.querySelectorAll(".math"))
    each.innerHTML = "<mjx-container>" + each.textContent + "</mjx-container>"; })}};
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (GOOD, None),
        (MATH, "no MathJax"),
        (MATH + "<script>MathJax = {startup: {}}</script>", "1 formulas as TeX"),
        (SETS + MATH, None),
        (SETS + MATH + "<i data-mjx-error='no'>a</i>", "formula with an error: a"),
        ("<div style='width: 500px'>wide</div>", "wide on a screen of 390: DIV"),
        ("<div style='overflow: auto'><p style='width: 500px'>w</p></div>", None),
        ("<p style='color: #777; background: #666'>grey</p>", "contrast"),
        (
            "<style>[data-theme=dark] p {background: black}</style><p>black</p>",
            "dark: contrast 1.0 of P black",
        ),
        ("<img src='none.png'>", "not shown: none.png"),
        ("<p>see :ref:`there`</p>", "not rendered: :ref:`there`"),
        ("<p>where \\(x^2\\) is</p>", "not rendered: "),
        ("<p>as <code>:ref:`there`</code></p>", None),
    ],
)
def test_in_a_browser(body, complaint, check_site, site):
    found, number = check_site.check_in_browser(site(body), BROWSER)
    assert number == 3
    assert all(text.startswith("/a.html: ") for text in found)
    if complaint is None:
        assert not found
    else:
        assert found and all(complaint in text for text in found)


def test_a_folder_without_pages(check_site, tmp_path):
    assert "no index.html" in check_site.check_files(tmp_path / "none")[0]
