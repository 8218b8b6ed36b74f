#!/usr/bin/python3
"""Makes tests/data/xlsx/*.xlsx and the seeds of fuzz/corpus/xlsx: workbooks that are small enough to
be cut at every byte."""

import zipfile
from pathlib import Path
from typing import Dict

HERE = Path(__file__).resolve().parent
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relations(**targets: str) -> str:
    return "<Relationships>" + "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{"sharedStrings" if name == "s" else "worksheet"}" '
        f'Target="{target}"/>' for name, target in targets.items()) + "</Relationships>"


def workbook(*names: str) -> str:
    return f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>' + "".join(
        f'<sheet name="{name}" r:id="{name}"/>' for name in names) + "</sheets></workbook>"


def sheet(rows: str) -> str:
    return f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"


SHARED = {
    "xl/workbook.xml": workbook("a", "b"),
    "xl/_rels/workbook.xml.rels": relations(a="worksheets/sheet1.xml", b="/xl/worksheets/sheet2.xml",
                                            s="sharedStrings.xml"),
    "xl/sharedStrings.xml": f"<sst {MAIN}><si><t>NPU Name</t></si><si><r><t>Max</t></r><r><t> diff</t>"
                            "</r><rPh><t>no</t></rPh></si><si/></sst>",
    "xl/worksheets/sheet1.xml": sheet(
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row r="2"/>'
        '<row r="3"><c r="A3" t="inlineStr"><is><t>a &amp; b</t></is></c><c><v>2.5</v></c>'
        '<c r="C3" t="b"><v>1</v></c><c r="D3" t="str"><f>A1</f><v>x</v></c><c r="E3"/></row>'),
    "xl/worksheets/sheet2.xml": sheet('<row><c t="n"><v>-1e-05</v></c><c t="e"><v>#N/A</v></c></row>'),
}

BAD: Dict[str, Dict[str, str]] = {
    "far_column": {"xl/worksheets/sheet1.xml": sheet('<row><c r="XFE1"><v>1</v></c></row>')},
    "no_such_string": {"xl/worksheets/sheet1.xml": sheet('<row><c t="s"><v>3</v></c></row>')},
    "not_a_number": {"xl/worksheets/sheet1.xml": sheet('<row><c t="s"><v>-1</v></c></row>')},
    "same_part": {"xl/_rels/workbook.xml.rels": relations(a="worksheets/sheet1.xml",
                                                          b="worksheets/sheet1.xml",
                                                          s="sharedStrings.xml")},
    "missing_part": {"xl/_rels/workbook.xml.rels": relations(a="worksheets/sheet9.xml")},
    "no_sheets": {"xl/workbook.xml": workbook()},
    "doctype": {"xl/worksheets/sheet1.xml":
                '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>' + sheet("")},
    "external": {"xl/worksheets/sheet1.xml": '<!DOCTYPE x SYSTEM "file:///etc/passwd">' + sheet("")},
    "deep": {"xl/worksheets/sheet1.xml": "<a>" * 100 + "</a>" * 100},
    "unclosed": {"xl/worksheets/sheet1.xml": "<worksheet><sheetData><row>"},
}


def write(path: Path, parts: Dict[str, str], method: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = method
            book.writestr(entry, text)


def main() -> None:
    seeds = HERE.parent.parent / "fuzz" / "corpus" / "xlsx"
    for folder in (HERE / "xlsx", seeds):
        write(folder / "good.xlsx", SHARED, zipfile.ZIP_DEFLATED)
        write(folder / "stored.xlsx", SHARED, zipfile.ZIP_STORED)
    for name, parts in BAD.items():
        write(HERE / "xlsx" / f"{name}.xlsx", {**SHARED, **parts}, zipfile.ZIP_DEFLATED)
        write(seeds / f"{name}.xlsx", {**SHARED, **parts}, zipfile.ZIP_STORED)


if __name__ == "__main__":
    main()
