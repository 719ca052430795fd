"""The widths that the engine lays out with, against the fonts themselves."""

from __future__ import annotations

import pytest
from PIL import ImageFont

from lowerscope.core.model.graph import DEFAULT
from lowerscope.resources import FONTS

# What pillow measures at a size of 1000 is exact to a thousandth.
TITLE = ImageFont.truetype(str(FONTS / "Inter-SemiBold.otf"), 1000)
QUIET = ImageFont.truetype(str(FONTS / "Inter-Regular.otf"), 1000)


@pytest.mark.parametrize("text", ["linear0", "layer1_0_conv1", "output", "add_12", "p×q·r"])
def test_title_width_is_that_of_the_font(text: str) -> None:
    # Kerning, which is left out, is worth two pixels at most in such words.
    assert DEFAULT.title_width(text) == pytest.approx(TITLE.getlength(text) * 0.013, abs=2.1)


@pytest.mark.parametrize("text", ["1×784 f32", "Conv2d · 3 × 64, 7×7, stride 2", "R.nn.relu"])
def test_quiet_width_is_that_of_the_font(text: str) -> None:
    assert DEFAULT.quiet_width(text) == pytest.approx(QUIET.getlength(text) * 0.011, abs=2.1)


def test_other_characters_count_as_the_widest() -> None:
    assert DEFAULT.title_width("層") == max(DEFAULT.title)
    assert DEFAULT.quiet_width("a→b") == pytest.approx(
        DEFAULT.quiet_width("ab") + max(DEFAULT.quiet)
    )


def test_nothing_has_no_width() -> None:
    assert DEFAULT.title_width("") == 0
