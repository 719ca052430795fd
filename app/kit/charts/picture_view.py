"""A small picture, pixel by pixel, with a caption."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.typefaces import TextMetrics, ui_font

_CAPTION = 22
_CAPTION_PIXELS = 12
_ROOM = 8
_SMALLEST = 96


class PictureView(QWidget):
    """A picture of 8 bits a channel, enlarged by a whole number where there is room."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._image = QImage()
        self._caption = ""
        self._font = ui_font(_CAPTION_PIXELS)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_picture(
        self, data: bytes, width: int, height: int, channels: int = 1, caption: str = ""
    ) -> None:
        """Show a picture.

        Args:
            data: ``height`` rows of ``width`` pixels of ``channels`` bytes, from the top left.
            width, height: In pixels.
            channels: 1 for grey, 3 for red, green and blue.
            caption: The line below the picture.
        """
        assert channels in (1, 3), channels
        assert len(data) == width * height * channels, (len(data), width, height, channels)
        grey = QImage.Format.Format_Grayscale8
        layout = grey if channels == 1 else QImage.Format.Format_RGB888
        # The image reads the caller's bytes in place until it is copied.
        self._image = QImage(data, width, height, width * channels, layout).copy()
        self._caption = caption
        self.setAccessibleName(f"{self._name}: {caption}" if caption else self._name)
        self.updateGeometry()
        self.update()

    def clear(self) -> None:
        """Remove the picture and the caption."""
        self._image = QImage()
        self._caption = ""
        self.setAccessibleName(self._name)
        self.update()

    def image(self) -> QImage:
        """Return the picture, in its original size."""
        return self._image

    def caption(self) -> str:
        """Return the line below it."""
        return self._caption

    def picture_rect(self) -> QRectF:
        """Return the area of the picture in the widget."""
        if self._image.isNull():
            return QRectF()
        below = _CAPTION if self._caption else 0
        room = QRectF(self.rect()).adjusted(_ROOM, _ROOM, -_ROOM, -_ROOM - below)
        size = self._image.size()
        scale = min(room.width() / size.width(), room.height() / size.height())
        if scale >= 1:
            scale = int(scale)
        width, height = size.width() * scale, size.height() * scale
        left = round(room.center().x() - width / 2)
        return QRectF(left, round(room.top()), width, height)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(_SMALLEST + 2 * _ROOM, _SMALLEST + 2 * _ROOM + _CAPTION)

    def minimumSizeHint(self) -> QSize:
        return QSize(_SMALLEST // 2, _SMALLEST // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        place = self.picture_rect()
        if place.isEmpty():
            return
        colours = theme.current()
        painter = QPainter(self)
        # Enlarged, each pixel is a square; reduced, pixels are averaged.
        smaller = place.width() < self._image.width()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smaller)
        painter.drawImage(place, self._image)
        painter.setPen(QColor(colours.line))
        painter.drawRect(place.adjusted(-1, -1, 0, 0))
        if self._caption:
            metrics = TextMetrics(self._font)
            room = self.width() - 2 * _ROOM
            words = metrics.elidedText(self._caption, Qt.TextElideMode.ElideRight, room)
            left = place.center().x() - metrics.horizontalAdvance(words) / 2
            painter.setFont(self._font)
            painter.setPen(QColor(colours.quiet))
            at = QPointF(max(_ROOM, left), place.bottom() + 6 + metrics.ascent())
            painter.drawText(at, words)
