#!/usr/bin/env python3
"""A browser with somebody in front of it: signs in and agrees to everything.

browser.py ADDRESS

Opens the address, follows redirects, keeps cookies, and fills in and sends every form that it is shown, until a page has
none. That page is appended to the file that SEEN names in the environment, after its address without what follows `?`.
"""

import html.parser
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

MOST_FORMS = 5
# What is typed where a form asks for something.
TYPED = {"text": "ada", "password": "a password"}


class Form(html.parser.HTMLParser):
    """The first form of a page: where it goes, and its fields as they are sent."""

    def __init__(self, page):
        super().__init__()
        self.action = None
        self.fields = {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = attributes["action"]
        if tag == "input" and "name" in attributes:
            kind = attributes.get("type", "text")
            self.fields[attributes["name"]] = attributes.get("value", TYPED.get(kind, ""))


def main():
    cookies = urllib.request.HTTPCookieProcessor()
    opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))
    address, sent = sys.argv[1], None
    for _ in range(MOST_FORMS):
        try:
            answer = opener.open(address, sent, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        page = answer.read().decode()
        form = Form(page)
        if form.action is None:
            break
        address = urllib.parse.urljoin(answer.url, form.action)
        sent = urllib.parse.urlencode(form.fields).encode()
    with open(os.environ["SEEN"], "a", encoding="utf-8") as seen:
        seen.write(f"{answer.status} {answer.url.split('?')[0]}\n{page}\n")


main()
