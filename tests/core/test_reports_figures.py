import hashlib
import os
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from truerank.core.figures import histogram, precision_curve, stacked_histograms, to_pdf, to_svg

VALUES = np.float32([0.5, 0.905, 0.91, 0.915, 0.955, 1.0])


def bars(values=VALUES, **options):
    return histogram(
        np.round(values.astype(float), 6), threshold=0.91, x_label="cosine similarity", counted="pairs", **options
    )


def curve():
    x = np.array([0.8, 0.9, 0.95])
    return precision_curve(x, [0.6, 0.8, 0.95], [0.5, 0.7, 0.9], [0.7, 0.9, 1.0], labels=80, target=0.9, chosen=0.94)


def stack():
    return stacked_histograms(
        [("robust04", VALUES), ("$core$_17", VALUES[:3])], threshold=0.91, x_label="cosine similarity", counted="topics"
    )


def test_a_value_on_the_threshold_is_not_above_it():
    below, above = (patch.get_data() for patch in bars(scale="linear").axes[0].patches)
    assert (below.values.sum(), above.values.sum()) == (3, 3)
    assert (below.edges[-1], above.edges[0]) == pytest.approx((0.91, 0.91))


@pytest.mark.parametrize("make", [bars, curve, stack])
def test_svg_is_inert_and_takes_its_ink_from_the_page(make):
    svg = to_svg(make(), name="one", description='What "it" <shows>')
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert 'role="img" aria-label="What &quot;it&quot; &lt;shows&gt;"' in svg
    assert "currentColor" in svg
    assert not re.search(r"<script|<style|<metadata|<!DOCTYPE|<\?xml|<image|<foreignObject|\son\w+=|javascript:", svg)
    links = re.findall(r'(?:href="|url\()([^")]*)', svg)
    assert links
    assert all(link.startswith("#one-") for link in links)
    assert set(re.findall('https?://[^"]+', svg)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert all(identifier.startswith("one-") for identifier in re.findall(r'\bid="([^"]+)"', svg))


def test_the_same_figure_has_the_same_bytes_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_reports_figures import *\n"
        "print(digest())\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "12",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SOURCE_DATE_EPOCH": "7",
    }
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.split() == [digest(), "False"]


def digest():
    parts = [to_svg(make(), name="x", description="").encode() + to_pdf(make()) for make in (bars, curve, stack)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_users_settings_are_neither_read_nor_changed():
    expected = to_svg(bars(), name="x", description="")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        assert to_svg(bars(), name="x", description="") == expected
        assert dict(matplotlib.rcParams) == before
