"""Report descriptors for tests: random valid ones whose fields are known.

A random descriptor is written from fields drawn beforehand, in one of the many ways in which the items allow to say the
same. hid-tools (`tests.devices.joystick.oracle`) cannot read all of them, so every descriptor comes in two versions
with the same fields:

- ``data`` uses everything;
- ``plain`` has no long items and no delimiters (hid-tools stops or takes alternatives for further usages), no usage
  range next to other usages (it would forget those), the unit again after a push (it loses it there) and the report id
  again after a pop (it does not bring it back).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import devices.emulators
from devices.joystick.hid.descriptor import Collection, Field, ReportType, Tag

Draw = Callable[[st.SearchStrategy[Any]], Any]
Fields = dict[tuple[ReportType, int], list[Field]]

MAIN = {ReportType.INPUT: Tag.INPUT, ReportType.OUTPUT: Tag.OUTPUT, ReportType.FEATURE: Tag.FEATURE}
PAGES = (0x01, 0x02, 0x09, 0x0A, 0x0F, 0xFF00)
FOLDER = Path(devices.emulators.__path__[0]) / "pid"


def descriptor_of(name):
    """Return the descriptor in a hex file of the emulators."""
    lines = (FOLDER / f"{name}.hex").read_text().splitlines()
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in lines))


@dataclass(frozen=True)
class Described:
    """A descriptor and its fields."""

    data: bytes
    plain: bytes
    fields: Fields


@dataclass
class Writer:
    """Writes items; `state` holds the present globals."""

    draw: Draw
    data: bytearray = field(default_factory=bytearray)
    plain: bytearray = field(default_factory=bytearray)
    state: dict[int, Any] = field(default_factory=dict)
    pushed: list[dict[int, Any]] = field(default_factory=list)

    def item(self, tag, payload=b"", *, data=True, plain=True):
        whole = bytes([tag | (0, 1, 2, 0, 3)[len(payload)]]) + payload
        self.data += whole if data else b""
        self.plain += whole if plain else b""

    def noise(self):
        """Write an item that means nothing here: a long one, a string index."""
        match self.draw(st.integers(0, 12)):
            case 0:
                content = self.draw(st.binary(max_size=5))
                self.data += bytes([0xFE, len(content), 0xF3]) + content
            case 1:
                self.item(0x78, b"\x04")

    def number(self, tag, value, *, signed):
        fitting = [n for n in (1, 2, 4) if fits(value, n, signed=signed)]
        size = self.draw(st.sampled_from([*fitting, *([0] if value == 0 else [])]))
        self.item(tag, value.to_bytes(size, "little", signed=signed))

    def state_global(self, tag, value, *, signed=False):
        """State a global item, or leave it out if it holds anyhow."""
        if self.state.get(tag) != (value, signed) or self.draw(st.integers(0, 3)) == 0:
            self.number(tag, value, signed=signed)
            self.state[tag] = value, signed

    def state_range(self, minimum, maximum, low, high):
        """State a range in either order; the maximum has the sign of the minimum."""
        ends = [(minimum, low, True), (maximum, high, low < 0)]
        for tag, value, signed in self.draw(st.permutations(ends)):
            self.state_global(tag, value, signed=signed)

    def state_exponent(self, value):
        if self.state.get(Tag.UNIT_EXPONENT) == value:
            return
        nibble = bytes([value & 0x0F])
        self.item(Tag.UNIT_EXPONENT, self.draw(st.sampled_from([nibble, value.to_bytes(1, "little", signed=True)])))
        self.state[Tag.UNIT_EXPONENT] = value

    def state_page(self, page):
        self.state_global(Tag.USAGE_PAGE, page)

    def push(self):
        self.pushed.append(self.state.copy())
        self.item(Tag.PUSH)
        unit, exponent = self.state.get(Tag.UNIT, (0, False))[0], self.state.get(Tag.UNIT_EXPONENT, 0)
        self.item(Tag.UNIT, unit.to_bytes(4, "little"), data=False)
        self.item(Tag.UNIT_EXPONENT, bytes([exponent & 0x0F]), data=False)

    def pop(self):
        self.state = self.pushed.pop()
        self.item(Tag.POP)
        if Tag.REPORT_ID in self.state:
            self.item(Tag.REPORT_ID, bytes([self.state[Tag.REPORT_ID][0]]), data=False)

    def usages(self, runs):
        """Write runs of usages (page, first, number of them)."""
        pages = {page for page, _, _ in runs}
        late = len(pages) == 1 and self.draw(st.booleans())
        simple = len(runs) == 1 or all(count == 1 for _, _, count in runs)
        for page, first, count in runs:
            short = late or self.draw(st.booleans())
            if short and not late:
                self.state_page(page)
            self._run(page, first, count, short=short, simple=simple)
        if late:  # the page at the main item counts
            self.state_page(next(iter(pages)))

    def _run(self, page, first, count, *, short, simple):
        def usage(identity):
            if short:
                return identity.to_bytes(self.draw(st.sampled_from([n for n in (1, 2) if fits(identity, n)])), "little")
            return (page << 16 | identity).to_bytes(4, "little")

        delimited = self.draw(st.integers(0, 7)) == 0
        if delimited:
            self.item(Tag.DELIMITER, b"\x01", plain=False)
        if count == 1 and self.draw(st.booleans()):
            self.item(Tag.USAGE, usage(first), plain=simple)
        else:
            ends = [(Tag.USAGE_MINIMUM, usage(first)), (Tag.USAGE_MAXIMUM, usage(first + count - 1))]
            for tag, payload in self.draw(st.permutations(ends)):
                self.item(tag, payload, plain=simple and count > 1)
            if simple and count == 1:
                self.item(Tag.USAGE, usage(first), data=False)
        for i in range(0 if simple else count):
            self.item(Tag.USAGE, (page << 16 | first + i).to_bytes(4, "little"), data=False)
        if delimited:
            self.item(Tag.USAGE, self.draw(st.binary(min_size=1, max_size=2)), plain=False)
            self.item(Tag.DELIMITER, b"\x00", plain=False)


def fits(value, size, *, signed=False):
    """Return True if a number fits into `size` bytes."""
    try:
        value.to_bytes(size, "little", signed=signed)
    except OverflowError:
        return False
    return True


RUN = st.tuples(st.sampled_from(PAGES), st.integers(1, 0x300), st.sampled_from((1, 1, 1, 2, 7)))


@st.composite
def ranges(draw):
    """Return a logical or physical range, with a liking for the edges of bytes."""
    edges = st.sampled_from([0, 1, 127, 128, 255, 256, 511, 32767, 32768, 36000, 65535, 65536, 2**31 - 1])
    low = draw(edges | st.sampled_from([-1, -32, -127, -128, -129, -512, -32768, -(2**31)]))
    if low < 0:
        return low, draw(edges.filter(lambda high: high >= low) | st.integers(low, min(low + 300, 0)))
    return low, draw(st.sampled_from([low, low + 1, 2**32 - 1]) | st.integers(low, 2**32 - 1))


@st.composite
def drawn_fields(draw):
    """Return a field that has no place yet, and the runs of usages from which its own come."""
    flags = draw(st.sampled_from([0, 1, 2, 2, 2, 3, 4, 6, 0x42, 0x46, 0x102]))
    runs = draw(st.lists(RUN, max_size=4))
    count = draw(st.integers(0, 12))
    written = [page << 16 | first + i for page, first, number in runs for i in range(number)]
    array = not flags & 3
    if not array and written:
        written = (written + written[-1:] * count)[:count]
    logical = draw(ranges())
    made = Field(
        report_type=draw(st.sampled_from(list(ReportType))),
        report_id=0,
        offset=0,
        size=draw(st.sampled_from([1, 1, 2, 4, 6, 7, 8, 8, 10, 16, 16, 32, 33, 64])),
        count=count,
        usages=tuple(written),
        array=array,
        constant=bool(flags & 1),
        relative=bool(flags & 4),
        null_state=bool(flags & 0x40),
        logical_min=logical[0],
        logical_max=logical[1],
        unit=draw(st.sampled_from([0, 0x14, 0x1003, 0xF0D1_2345])),
        unit_exponent=draw(st.integers(-8, 7)),
        collections=(),
    )
    return made, runs


def carried_over(made, earlier):
    """Return the field with the globals of an earlier one, which then need not be stated again."""
    names = ("size", "logical_min", "logical_max", "unit", "unit_exponent")
    return replace(made, **{name: getattr(earlier, name) for name in names})


def write_field(writer, made, runs):
    """Write the items that make a field, in any order, those that hold already only now and then."""
    parts = [
        lambda: writer.state_range(Tag.LOGICAL_MINIMUM, Tag.LOGICAL_MAXIMUM, made.logical_min, made.logical_max),
        lambda: writer.state_global(Tag.UNIT, made.unit),
        lambda: writer.state_exponent(made.unit_exponent),
        lambda: writer.state_global(Tag.REPORT_SIZE, made.size),
        lambda: writer.state_global(Tag.REPORT_COUNT, made.count),
        lambda: writer.usages(runs),
    ]
    if made.report_id:
        parts.append(lambda: writer.state_global(Tag.REPORT_ID, made.report_id))
    for part in writer.draw(st.permutations(parts)):
        writer.noise()
        part()
    flags = made.constant | (not made.array and (not made.constant or writer.draw(st.booleans()))) << 1
    flags |= made.relative << 2 | made.null_state << 6
    size = writer.draw(st.sampled_from([1, 2, *([0] if flags == 0 else [])]))
    writer.item(MAIN[made.report_type], flags.to_bytes(size, "little"))


ACTIONS = st.sampled_from(["open", "close", "push", "pop", "field", "field field", "field push field pop field"])


@st.composite
def valid_descriptors(draw):
    """Return a valid descriptor together with its fields."""
    writer, fields, bits = Writer(draw), {}, {}
    numbered = draw(st.booleans())
    around = []
    seen = []
    for action in ["open", *(word for words in draw(st.lists(ACTIONS, max_size=10)) for word in words.split())]:
        if action == "open" and len(around) < 6:
            kind, runs = draw(st.sampled_from([0, 1, 2, 0x80])), draw(st.lists(RUN, max_size=1))
            writer.usages([(page, first, 1) for page, first, _ in runs])
            writer.item(Tag.COLLECTION, bytes([kind]))
            around.append(Collection(kind, runs[0][0] << 16 | runs[0][1] if runs else 0))
        elif action == "close" and around:
            around.pop()
            writer.item(Tag.END_COLLECTION)
        elif action == "push":
            writer.push()
        elif action == "pop" and writer.pushed:
            writer.pop()
        elif action == "field":
            made, runs = draw(drawn_fields())
            if seen and draw(st.integers(0, 2)):
                made = carried_over(made, draw(st.sampled_from(seen)))
            seen.append(made)
            key = made.report_type, draw(st.sampled_from((1, 2, 3, 255))) if numbered else 0
            offset = bits.get(key, 8 if numbered else 0)
            made = replace(made, report_id=key[1], offset=offset, collections=tuple(around))
            write_field(writer, made, runs)
            if made.count:
                fields.setdefault(key, []).append(made)
                bits[key] = offset + made.size * made.count
    for _ in around:
        writer.item(Tag.END_COLLECTION)
    return Described(bytes(writer.data), bytes(writer.plain), fields)
