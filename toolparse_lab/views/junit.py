"""JUnit XML, which most services of continuous integration display."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

# Tag -> the attribute of a suite with the number of its elements.
_COUNTED = {"testcase": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def add_suite(root: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=xml_text(name))


def add_test(suite: ET.Element, group: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=xml_text(group), name=xml_text(name), time=f"{seconds:.3f}"
    )


def add_verdict(test: ET.Element, tag: str, message: str) -> ET.Element:
    """Add why a test did not pass. tag: failure, error or skipped."""
    return ET.SubElement(test, tag, message=xml_text(message))


def junit_file(root: ET.Element) -> str:
    """Return the file of a `testsuites` element, with the counts of its suites."""
    # A viewer shows these counts, and does not count for itself.
    for element in (*root, root):
        for tag, attribute in _COUNTED.items():
            element.set(attribute, str(len(list(element.iter(tag)))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def xml_text(text: str) -> str:
    """Return a text that XML can hold: control characters become their pictures, others are
    replaced.
    """

    def picture(match: re.Match[str]) -> str:
        code = ord(match[0])
        # Unicode's pictures of control characters begin at 0x2400.
        return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"

    return _NOT_XML.sub(picture, text)
