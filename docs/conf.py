"""Settings of the documentation site: sphinx-build -W docs site.

The pages are the Markdown of this folder, which reads as well where no site is built; reference pages are written from
the docstrings, the gallery from ``examples/``. Nothing is fetched, neither by the build nor by a page that is read.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "site")]

import felicific  # noqa: E402  after the path

project = "felicific"
copyright = "the felicific maintainers"
version = release = felicific.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "names",
    "pages",
]
exclude_patterns = [
    "_build",
    "site",
    "gallery/*.md5",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.zip",
    "**sg_execution_times.rst",
]
language = "en"
nitpicky = False

# -- Markdown --------------------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False  # 1$ and $2 are money
myst_dmath_allow_space = False
myst_dmath_double_inline = False
myst_heading_anchors = 3
myst_links_external_new_tab = False

# -- Docstrings ------------------------------------------------------------------------------------------------
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # numpydoc's sections say them in words
numpydoc_show_class_members = False  # they are on the page itself
numpydoc_class_members_toctree = False

# -- Examples --------------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "pages.order_of_examples",
    "image_scrapers": ("pages.picture",),
    "ignore_repr_types": "altair|felicific.plots",  # charts are drawn
    "capture_repr": ("_repr_html_", "__str__"),
    "reset_modules": (),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "abort_on_example_error": True,
}
warnings.filterwarnings(
    "ignore", message="No key says who"
)  # examples name no key where nobody is decided on

# -- Pages -----------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "felicific"
html_static_path = ["site/static"]
templates_path = ["site/templates"]
html_css_files = ["felicific.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "felicific"},
    "navbar_center": [],  # the bar at the side has all pages, under their captions
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"**": ["all-pages.html"]}
