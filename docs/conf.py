"""Sphinx configuration; builds without network access."""

import ast
import inspect
import os
import re
import sys
import warnings
from importlib.resources import files
from pathlib import Path

import matplotlib

import skbounds

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import gallery_order

matplotlib.use("Agg")
# sphinx-gallery runs the examples in this process.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

project = "skbounds"
author = "The skbounds developers"
copyright = "2026, the skbounds developers"
version = release = skbounds.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Links into other projects need their inventories, which only an online build can get.
if os.environ.get("SKBOUNDS_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "sklearn": ("https://scikit-learn.org/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
    }

# Mathematics in a browser without a network; one file with its own glyphs.
mathjax_script = files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg.js"
mathjax_path = mathjax_script.name
html_static_path = [str(mathjax_script)]

root_doc = "index"
exclude_patterns = ["_build", "examples"]
html_title = "skbounds"
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_nav_level": 2, "use_edit_page_button": False}
html_show_sourcelink = False

autosummary_generate = True
# Types are said in the docstrings.
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["auto_examples"],
    "subsection_order": [f"examples/{topic}" for topic in gallery_order.TOPICS],
    "within_subsection_order": "gallery_order.ReadingOrder",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    # Its pages load scripts from elsewhere.
    "write_computation_times": False,
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")


def write_api_page():
    """Write the API page from the public names, so that it cannot fall behind."""
    lines = ["API reference", "=============", ""]
    for topic, names in skbounds._TOPICS.items():
        module = getattr(skbounds, topic)
        summary = inspect.getdoc(module).splitlines()[0].rstrip(".")
        title = f"``skbounds.{topic}``: {summary[0].lower()}{summary[1:]}"
        lines += [title, "-" * len(title), "", f".. currentmodule:: skbounds.{topic}"]
        lines += [
            "",
            ".. autosummary::",
            "   :toctree: generated/",
            "   :nosignatures:",
        ]
        lines += ["", *(f"   {name}" for name in names), ""]
    structures = skbounds.fenchel_young.structures
    title = "``skbounds.fenchel_young.structures``: outputs of your own"
    lines += [title, "-" * len(title), "", f".. currentmodule:: {structures.__name__}"]
    lines += [
        "",
        ".. autosummary::",
        "   :toctree: generated/",
        "   :nosignatures:",
        "",
    ]
    lines += [*(f"   {name}" for name in structures.__all__), ""]
    title = "``skbounds``: the installation"
    lines += [title, "-" * len(title), ""]
    lines += [".. currentmodule:: skbounds", "", ".. autosummary::"]
    lines += ["   :toctree: generated/", "", "   show_versions", ""]
    write_page("api/index.rst", lines)


def write_modules_page():
    """Write the list of all modules, from their first lines."""
    title = "Modules"
    lines = [title, "=" * len(title), ""]
    package = Path(skbounds.__file__).parent
    folders = {package, *(path.parent for path in package.rglob("*.py"))}
    for folder in sorted(folders):
        title = f"``{folder.relative_to(package.parent).as_posix()}/``"
        lines += [title, "-" * len(title), ""]
        for path in sorted(folder.glob("*.py")):
            doc = ast.get_docstring(ast.parse(path.read_text())) or ""
            lines.append(f"- ``{path.name}``: {doc.partition(chr(10))[0]}")
        lines.append("")
    native = HERE.parent / "native"
    for folder in sorted(path for path in native.rglob("*") if path.is_dir()):
        headers = sorted(folder.glob("*.h"))
        if not headers:
            continue
        title = f"``native/{folder.relative_to(native).as_posix()}/``"
        lines += [title, "-" * len(title), ""]
        for path in headers:
            comment = []
            for line in path.read_text().splitlines():
                if not line.startswith("// "):
                    break
                comment.append(line[3:])
            lines.append(f"- ``{path.name}``: {' '.join(comment)}")
        lines.append("")
    write_page("developers/modules.rst", lines)


def write_page(name, lines):
    """Write a page, if it is another one than before."""
    page, text = HERE / name, "\n".join(lines)
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


# Labels in docstrings inherited from scikit-learn, plain text in an offline build.
INHERITED_LABELS = {
    "accuracy_score",
    "classes_",
    "fit",
    "meta-estimator",
    "metadata_routing",
    "r2_score",
}


def resolve_inherited_label(app, env, node, contnode):
    """Stand in for intersphinx where it is not enabled."""
    if node.get("reftarget") in INHERITED_LABELS:
        return contnode
    return None


def picture_first(app, docname, source):
    """Put an example's first picture below its title."""
    path = HERE / docname
    picture = path.parent / "images" / f"sphx_glr_{path.name}_001.png"
    if not docname.startswith("auto_examples/") or not picture.exists():
        return
    title = re.search(r"^(.+)\n=+\n", source[0], re.MULTILINE)
    if title:
        image = f"\n.. image:: images/{picture.name}\n   :alt: {title[1]}\n"
        source[0] = source[0][: title.end()] + image + source[0][title.end() :]


def setup(app):
    """Connect the handlers above."""
    app.connect("missing-reference", resolve_inherited_label)
    app.connect("source-read", picture_first)


write_api_page()
write_modules_page()
