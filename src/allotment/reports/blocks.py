"""What a section of the page is made of; the templates say how each of these looks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from allotment.reports.markup import Content, Html

CARDS_FROM = 4
"""columns from which on a row is shown as a card on a phone"""


@dataclass(frozen=True)
class HtmlColumn:
    """A column of a table; its kind is number (to the right), name or text."""

    head: Content
    cells: Sequence[Content]
    kind: str = "number"
    foot: Content = ""
    classes: Sequence[str] = ()
    """of each cell, beside its kind"""
    bars: Sequence[float] = ()
    """of each cell, a share that is drawn below it"""

    @property
    def label(self) -> str:
        """The head as text, for a cell of a card."""
        return self.head.striptags() if isinstance(self.head, Html) else self.head


@dataclass(frozen=True)
class PageTable:
    """Columns side by side, the first one naming the rows."""

    label: str
    columns: Sequence[HtmlColumn]
    strong: Collection[int] = ()
    """places of rows that stand out"""
    block = "table"

    @property
    def rows(self) -> range:
        return range(len(self.columns[0].cells))

    @property
    def has_foot(self) -> bool:
        return any(column.foot for column in self.columns)

    @property
    def are_cards(self) -> bool:
        return len(self.columns) >= CARDS_FROM


@dataclass(frozen=True)
class Note:
    """A remark."""

    text: Content
    block = "note"


@dataclass(frozen=True)
class Paragraph:
    text: Content
    block = "paragraph"


@dataclass(frozen=True)
class Chart:
    """A place that the script draws in, with what it shows in words and in a table."""

    kind: str
    at: int = 0
    title: Content = ""
    spoken: Content = ""
    table: PageTable | None = None
    keys: Sequence[tuple[str, str]] = ()
    """what its colours mean: kind, words"""
    block = "chart"


@dataclass(frozen=True)
class Charts:
    """Small charts side by side."""

    charts: Sequence[Chart | Note]
    keys: Sequence[tuple[str, str]] = ()
    """what lines, bands and points mean: kind, words"""
    block = "charts"


@dataclass(frozen=True)
class Panel:
    """A place that the script fills with controls."""

    id: str
    note: Content = ""
    """before it; it is of no use where the controls are not"""
    block = "panel"


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Content]
    block = "items"


@dataclass(frozen=True)
class Pairs:
    """What something is called, and what it is."""

    pairs: Sequence[tuple[Content, Sequence[Content]]]
    code: Collection[int] = ()
    """places of those that are copied to the letter"""
    block = "pairs"


@dataclass(frozen=True)
class ShownVerdict:
    """What was found about one figure."""

    title: Content
    grade: str
    badge: Content
    reasons: Pairs


@dataclass(frozen=True)
class VerdictList:
    verdicts: Sequence[ShownVerdict]
    folded: Sequence[ShownVerdict] = ()
    """that do not matter for the plan"""
    block = "verdicts"


@dataclass(frozen=True)
class Tile:
    """A small picture, or words in its place."""

    image: str
    """a link that holds it; "" where there is none"""
    alt: str
    said: str
    """what it shows, for those who do not see it"""
    text: Content
    """below it"""


@dataclass(frozen=True)
class GalleryRow:
    head: str
    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Gallery:
    """Pictures of a task side by side: of each a column, and below it what belongs to it."""

    title: Content
    label: str
    kind: str
    """what its labels are, in words"""
    heads: Sequence[Content]
    rows: Sequence[GalleryRow]
    legend: Sequence[tuple[str, Content]] = ()
    """colours and what they mean"""
    block = "gallery"


PageBlock = (
    PageTable | Note | Paragraph | Chart | Charts | Panel | Items | Pairs | VerdictList | Gallery
)


@dataclass(frozen=True)
class Section:
    """A part of the page with its heading."""

    id: str
    heading: str
    blocks: Sequence[PageBlock] = field(default_factory=tuple)
