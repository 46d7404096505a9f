"""Web pages: what a template shows is escaped, and a missing value is an error."""

import sys

import pytest

from dropdtw.files import templates

pytest.importorskip("jinja2", reason="jinja2 is not installed")


def beside(folder, text):
    (folder / "page.html").write_text(text, encoding="utf-8")
    return str(folder / "page.py")


def test_values_are_escaped(tmp_path):
    module = beside(tmp_path, '<p title="{{ name }}">{{ name }}</p>')
    shown = "&lt;b&gt;&#34;x&#34; &amp; &#39;y&#39;"
    assert templates.rendered(module, name="<b>\"x\" & 'y'") == f'<p title="{shown}">{shown}</p>'


def test_a_value_that_nobody_gave_is_an_error(tmp_path):
    with pytest.raises(Exception, match="'name' is undefined"):
        templates.rendered(beside(tmp_path, "{{ name }}"))


def test_without_jinja2_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"web pages need jinja2: pip install 'dropdtw\[text\]'"):
        templates.rendered(beside(tmp_path, ""))
