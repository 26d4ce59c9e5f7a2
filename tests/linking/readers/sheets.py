"""Write a workbook as Excel does, with the fewest parts."""

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

OFFICE = "http://schemas.openxmlformats.org"
RELATIONS = f"{OFFICE}/officeDocument/2006/relationships"
MAIN = f"{OFFICE}/spreadsheetml/2006/main"
Row = list[str | int | float | None]


def write_workbook(path: Path, sheets: dict[str, list[Row]]) -> Path:
    """sheets: Title -> rows."""
    numbers = range(1, len(sheets) + 1)
    links = [(i, f'{RELATIONS}/worksheet" Target="worksheets/sheet{i}.xml') for i in numbers]
    titles = (
        f'<sheet name="{escape(title)}" sheetId="{i}" r:id="r{i}"/>'
        for i, title in enumerate(sheets, 1)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{OFFICE}/package/2006/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        document = [(1, f'{RELATIONS}/officeDocument" Target="xl/workbook.xml')]
        archive.writestr("_rels/.rels", relations(document))
        archive.writestr("xl/_rels/workbook.xml.rels", relations(links))
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{"".join(titles)}</sheets>'
            "</workbook>",
        )
        for i, rows in enumerate(sheets.values(), 1):
            cells = (
                "".join(cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row))
                for r, row in enumerate(rows, 1)
            )
            body = "".join(f'<row r="{r}">{row}</row>' for r, row in enumerate(cells, 1))
            archive.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>',
            )
    return path


def relations(links: list[tuple[int, str]]) -> str:
    body = "".join(f'<Relationship Id="r{i}" Type="{kind}"/>' for i, kind in links)
    return f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{body}</Relationships>'


def cell(place: str, value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'
