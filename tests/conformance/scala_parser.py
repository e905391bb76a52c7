"""A parser of the part of Scala in which Apache Hudi's SQL tests are written.

The tree consists of tuples: the kind of a node, then its parts. `Untranslated` is raised where the text has
Scala that this parser does not know; the runner counts the case then as not translated.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

Node = tuple[Any, ...]


class Untranslated(Exception):
    """The text has Scala, or calls a class, that this interpreter does not know."""


class Long(int):
    """A number of 64 bits."""


class Token(NamedTuple):
    """A word of the text.

    Attributes:
        kind: group of `TOKEN` that matched.
        text: the word.
        at: where it begins.
    """

    kind: str
    text: str
    at: int


TOKEN = re.compile(
    r'''
 (?P<space>[ \t\r]+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<newline>\n)
|(?P<long_template>(?:s|f|raw)"""(?:.|\n)*?"""(?!"))|(?P<long_text>"""(?:.|\n)*?"""(?!"))
|(?P<template>(?:s|f|raw)"(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^"\\\n])*")
|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])')
|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[LlDdFf]?)
|(?P<name>[A-Za-z_$][A-Za-z_0-9$]*|`[^`]*`)
|(?P<sign>=>|<-|->|==|!=|<=|>=|&&|\|\||\+\+|::|\+=|:\+|[-+*/%<>=!|&^~:]|[(){}\[\],;.@\#?])
''',
    re.VERBOSE | re.DOTALL,
)
LEVELS = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("->",),
    ("to", "until"),
    ("+", "-", "++", "::", ":+"),
    ("*", "/", "%"),
)
"""Binary operators, the loosest first."""

CONTINUING = ("+", "++", "&&", "||", "->")
"""Operators that may begin a line which continues the one before."""

MODIFIERS = ("implicit", "lazy", "private", "override", "protected", "final", "abstract", "sealed", "case")
INFIX = ("foreach", "map", "contains", "equals", "zip", "startsWith", "union")
PLACEHOLDER = ("name", "_placeholder")
END = Token("end", "", 0)


def tokens_of(text: str) -> list[Token]:
    """Split a text into words, without spaces and comments."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Untranslated(f"no token at {text[at : at + 20]!r}")
        kind = match.lastgroup or ""
        if kind not in ("space", "comment"):
            found.append(Token(kind, match.group(), at))
        at = match.end()
    return [*found, END._replace(at=at)]


class Parser:
    """Recursive descent over the words of a text.

    Attributes:
        words: of the text.
        index: of the next word.
    """

    def __init__(self, text: str) -> None:
        self.words = tokens_of(text)
        self.index = 0
        self._newlines_are_spaces = [False]
        self._inside_braces = [False]

    def peek(self) -> Token:
        if self._newlines_are_spaces[-1]:
            self.skip_newlines()
        return self.words[self.index]

    def after_newlines(self) -> Token:
        at = self.index
        while self.words[at].kind == "newline":
            at += 1
        return self.words[at]

    def skip_newlines(self) -> None:
        while self.words[self.index].kind == "newline":
            self.index += 1

    def next(self) -> Token:
        word = self.peek()
        self.index += 1
        return word

    def second(self) -> Token:
        return self.words[min(self.index + 1, len(self.words) - 1)]

    def is_at(self, text: str) -> bool:
        word = self.peek()
        return word.text == text and word.kind in ("sign", "name")

    def take(self, text: str) -> bool:
        if not self.is_at(text):
            return False
        self.index += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise Untranslated(f"expected {text} before {self.peek().text[:30]!r}")

    # ------------------------------------------------------------------ statements
    def block(self) -> Node:
        """Parse statements up to a closing brace or the end of the text."""
        self._newlines_are_spaces.append(False)
        statements = []
        while True:
            while self.words[self.index].kind == "newline" or self.is_at(";"):
                self.index += 1
            if self.words[self.index].kind == "end" or self.is_at("}"):
                break
            before = self.index
            statements.append(("statement", self.statement()))
            if self.index == before:
                raise Untranslated(f"no statement at {self.peek().text[:30]!r}")
        self._newlines_are_spaces.pop()
        return ("block", statements)

    def block_of_class(self) -> Node:
        """Parse the text of a member of a class: definitions, values and calls."""
        _, statements = self.block()
        return ("members", [each[1] for each in statements])

    def statement(self) -> Node:
        self._skip_modifiers()
        if self.is_at("import"):
            while self.words[self.index].kind not in ("newline", "end"):
                self.index += 1
            return ("unit",)
        if self.is_at("val") or self.is_at("var"):
            self.index += 1
            pattern = self.pattern()
            if self.take(":"):
                self._skip_type()
            self.expect("=")
            self.skip_newlines()
            return ("val", pattern, self.expression())
        if self.is_at("def"):
            return self._definition()
        if self.is_at("class") and self.second().kind == "name":
            return self._record_class()
        if self.is_at("type"):
            raise Untranslated("type alias")
        return self.expression()

    def _skip_modifiers(self) -> None:
        while True:
            if self.is_at("@"):
                self.index += 2
                if self.is_at("["):
                    self.skip_brackets()
                if self.is_at("("):
                    self.arguments()
                self.skip_newlines()
            elif any(self.is_at(each) for each in MODIFIERS):
                self.index += 1
                if self.is_at("["):
                    self.skip_brackets()
            else:
                return

    def _definition(self) -> Node:
        self.index += 1
        name = self.next().text
        parameters: list[tuple[str, Node | None]] = []
        lists: list[int] = []
        if self.is_at("["):
            self.skip_brackets()
        while self.is_at("("):
            self.expect("(")
            self._newlines_are_spaces.append(True)
            while not self.take(")"):
                parameters.append(self._parameter())
                self.take(",")
            self._newlines_are_spaces.pop()
            lists.append(len(parameters) - sum(lists))
        if self.take(":"):
            self._skip_type()
        if self.take("="):
            self.skip_newlines()
        return ("def", name, parameters, self.expression(), lists)

    def _record_class(self) -> Node:
        """Parse a class that only has parameters."""
        self.index += 1
        name = self.next().text
        if not self.is_at("("):
            raise Untranslated(f"class {name}")
        self.expect("(")
        self._newlines_are_spaces.append(True)
        parameters = []
        while not self.take(")"):
            parameters.append(self._parameter())
            self.take(",")
        self._newlines_are_spaces.pop()
        if self.is_at("{") or self.is_at("extends"):
            raise Untranslated(f"class {name} with a body")
        return ("record", name, parameters)

    def _parameter(self) -> tuple[str, Node | None]:
        while self.is_at("implicit"):
            self.index += 1
        name = self.next().text
        self.expect(":")
        depth = 0
        text = ""
        while not (depth == 0 and (self.is_at(",") or self.is_at(")") or self.is_at("="))):
            text = self.next().text
            depth += (text in ("[", "(")) - (text in ("]", ")"))
        if text == "*":
            return f"*{name}", None
        return name, self.expression() if self.take("=") else None

    def _skip_type(self) -> None:
        depth = 0
        while True:
            word = self.peek()
            if word.kind in ("newline", "end"):
                return
            if word.text in ("[", "("):
                depth += 1
            elif word.text in ("]", ")"):
                if depth == 0:
                    return
                depth -= 1
            elif depth == 0 and word.text in ("=", ",", "{", "}", "=>"):
                return
            self.index += 1

    def skip_brackets(self) -> None:
        depth = 0
        while True:
            word = self.next()
            depth += (word.text == "[") - (word.text == "]")
            if depth == 0:
                return
            if word.kind == "end":
                raise Untranslated("open bracket")

    # ------------------------------------------------------------------ patterns
    def pattern(self) -> Node:
        if self.take("("):
            return ("tuple", self._patterns())
        word = self.next()
        if word.kind in ("text", "number"):
            return ("literal", word.text.strip('"'))
        if self.is_at(":"):
            self.index += 1
            self._skip_simple_type()
        name = word.text
        while self.is_at("."):
            self.index += 1
            name = self.next().text
        if self.is_at("(") and name[0].isupper():
            self.expect("(")
            return ("constructor", name, self._patterns())
        return ("constant", name) if name[0].isupper() else ("name", name)

    def _patterns(self) -> list[Node]:
        found = []
        while not self.take(")"):
            found.append(self.pattern())
            self.take(",")
        return found

    def _skip_simple_type(self) -> None:
        self.next()
        while self.is_at("."):
            self.index += 2
        if self.is_at("["):
            self.skip_brackets()

    def cases(self) -> list[tuple[Node, Node | None, Node]]:
        """Parse the cases of a `match` or `catch`, up to the closing brace."""
        found = []
        self._newlines_are_spaces.append(False)
        self._inside_braces.append(True)
        while True:
            self.skip_newlines()
            if not self.take("case"):
                break
            pattern = self.pattern()
            while self.take("|"):
                pattern = ("either", pattern, self.pattern())
            guard = self.expression() if self.take("if") else None
            self.expect("=>")
            found.append((pattern, guard, self._body_of_case()))
        self._inside_braces.pop()
        self._newlines_are_spaces.pop()
        return found

    def _body_of_case(self) -> Node:
        body = []
        while True:
            while self.words[self.index].kind == "newline" or self.is_at(";"):
                self.index += 1
            is_next = self.is_at("case") and self.second().text != "class"
            if is_next or self.is_at("}") or self.words[self.index].kind == "end":
                return ("block", body)
            body.append(("statement", self.statement()))

    # ------------------------------------------------------------------ expressions
    def expression(self) -> Node:
        word = self.peek()
        special = getattr(self, f"_{word.text}_expression", None) if word.kind == "name" else None
        if special is not None:
            found: Node = special()
            return found
        if word.kind == "name" and self.second().kind == "sign":
            if self.second().text == "=>":
                self.index += 2
                self.skip_newlines()
                return ("function", [("name", word.text)], self._body())
            if self.second().text in ("=", "+="):
                self.index += 1
                operator = self.next().text
                self.skip_newlines()
                return ("set", word.text, operator, self.expression())
        if word.text == "(" and self._is_function():
            return self._function_of_several()
        found = self._binary(0)
        while self.is_at("match"):
            self.index += 1
            self.expect("{")
            cases = self.cases()
            self.expect("}")
            found = ("match", found, cases)
        return ("function", [PLACEHOLDER], found) if has_placeholder(found) else found

    def _in_parentheses(self) -> Node:
        self.expect("(")
        self._newlines_are_spaces.append(True)
        found = self.expression()
        self._newlines_are_spaces.pop()
        self.expect(")")
        self.skip_newlines()
        return found

    def _if_expression(self) -> Node:
        self.index += 1
        condition = self._in_parentheses()
        then = self.expression()
        otherwise: Node = ("unit",)
        if self.after_newlines().text == "else":
            self.skip_newlines()
            self.index += 1
            self.skip_newlines()
            otherwise = self.expression()
        return ("if", condition, then, otherwise)

    def _while_expression(self) -> Node:
        self.index += 1
        return ("while", self._in_parentheses(), self.expression())

    def _for_expression(self) -> Node:
        self.index += 2
        self._newlines_are_spaces.append(True)
        generators = []
        while not (self.is_at(")") or self.is_at("}")):
            pattern = self.pattern()
            self.expect("<-")
            generators.append((pattern, self.expression()))
            self.take(";")
        self.index += 1
        self._newlines_are_spaces.pop()
        self.skip_newlines()
        yields = self.take("yield")
        self.skip_newlines()
        return ("for", generators, self.expression(), yields)

    def _try_expression(self) -> Node:
        self.index += 1
        body = self.expression()
        cases, last = None, None
        if self.after_newlines().text == "catch":
            self.skip_newlines()
            self.index += 1
            self.expect("{")
            cases = self.cases()
            self.expect("}")
        if self.after_newlines().text == "finally":
            self.skip_newlines()
            self.index += 1
            last = self.expression()
        return ("try", body, cases, last)

    def _throw_expression(self) -> Node:
        self.index += 1
        return ("throw", self.expression())

    def _return_expression(self) -> Node:
        self.index += 1
        return ("return", self.expression())

    def _function_of_several(self) -> Node:
        self.index += 1
        patterns = self._patterns()
        self.expect("=>")
        self.skip_newlines()
        return ("function", patterns, self._body())

    def _body(self) -> Node:
        """Parse the body of a function: in braces it goes on to the closing one."""
        return self.block() if self._inside_braces[-1] else self.expression()

    def _is_function(self) -> bool:
        depth, at = 0, self.index
        while self.words[at].kind != "end":
            if self.words[at].kind == "sign":
                depth += (self.words[at].text == "(") - (self.words[at].text == ")")
                if depth == 0:
                    return self.words[at + 1].text == "=>"
            at += 1
        return False

    def _binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            word = self.peek()
            if word.kind == "newline":
                ahead = self.after_newlines()
                if ahead.text not in CONTINUING or ahead.text not in LEVELS[level]:
                    return left
                self.skip_newlines()
                word = self.peek()
            if word.text not in LEVELS[level] or word.kind not in ("sign", "name"):
                return left
            self.index += 1
            self.skip_newlines()
            left = ("binary", word.text, left, self._binary(level + 1))

    def _unary(self) -> Node:
        if self.take("!"):
            return ("not", self._unary())
        if self.is_at("-"):
            self.index += 1
            return ("negative", self._unary())
        return self._postfix()

    def arguments(self) -> list[Node]:
        self.expect("(")
        self._newlines_are_spaces.append(True)
        self._inside_braces.append(False)
        found: list[Node] = []
        while not self.take(")"):
            is_named = self.peek().kind == "name" and self.second().text == "="
            if is_named:
                name = self.next().text
                self.index += 1
                found.append(("named", name, self.expression()))
            else:
                found.append(self._argument())
            self.take(",")
        self._inside_braces.pop()
        self._newlines_are_spaces.pop()
        return found

    def _argument(self) -> Node:
        value = self.expression()
        if not self.is_at(":"):
            return value
        self.index += 1
        if self.is_at("_"):
            self.next()
            self.take("*")
            return ("splat", value)
        self._skip_type()
        return value

    def _postfix(self) -> Node:
        found = self._atom()
        while True:
            word = self.peek()
            if word.kind == "newline":
                if self.after_newlines().text != ".":
                    return found
                self.skip_newlines()
                word = self.peek()
            if word.kind == "name" and word.text in INFIX:
                self.index += 1
                found = ("call", ("select", found, word.text), [self._atom()])
            elif word.kind != "sign":
                return found
            elif word.text == ".":
                self.index += 1
                self.skip_newlines()
                found = ("select", found, self.next().text.strip("`"))
            elif word.text == "[":
                self.skip_brackets()
            elif word.text == "(":
                found = ("call", found, self.arguments())
            elif word.text == "{" and found[0] in ("call", "select", "name"):
                found = ("call", found, [self._braces()])
            else:
                return found

    def _braces(self) -> Node:
        """Parse an argument in braces: a block that is evaluated later, or a function."""
        self.expect("{")
        self._inside_braces.append(True)
        self._newlines_are_spaces.append(False)
        self.skip_newlines()
        if self.is_at("case") and self.second().text != "class":
            cases = self.cases()
            found: Node = ("function", [("name", "_matched")], ("match", ("name", "_matched"), cases))
        elif self.peek().kind == "name" and self.second().text == "=>":
            name = self.next().text
            self.index += 1
            found = ("function", [("name", name)], self.block())
        elif self.is_at("(") and self._is_function():
            found = self._function_of_several()
        else:
            found = ("later", self.block())
        self.skip_newlines()
        self._newlines_are_spaces.pop()
        self._inside_braces.pop()
        self.expect("}")
        return found

    def _atom(self) -> Node:
        word = self.peek()
        if word.kind == "sign" and word.text == "(":
            values = self.arguments()
            return values[0] if len(values) == 1 else ("tuple", values) if values else ("unit",)
        if word.kind == "sign" and word.text == "{":
            inner = self._braces()
            return inner[1] if inner[0] == "later" else inner
        self.index += 1
        if word.kind in ("number", "text", "char", "long_text", "template", "long_template"):
            return _literal(word)
        if word.kind == "name":
            return self._name(word.text)
        raise Untranslated(f"no expression at {word.text[:20]!r}")

    def _name(self, text: str) -> Node:
        if text == "new":
            name = self.next().text
            while self.is_at("."):
                self.index += 1
                name = self.next().text
            if self.is_at("["):
                self.skip_brackets()
            return ("new", name, self.arguments() if self.is_at("(") else [])
        if text == "classOf" and self.is_at("["):
            at = self.index
            self.skip_brackets()
            return ("class", "".join(each.text for each in self.words[at + 1 : self.index - 1]))
        constants = {"true": True, "false": False, "null": None}
        if text in constants:
            return ("literal", constants[text])
        return PLACEHOLDER if text == "_" else ("name", text.strip("`"))


def _literal(word: Token) -> Node:
    text = word.text
    if word.kind == "number":
        is_float = text[-1] in "dDfF" or "." in text or "e" in text
        number = float(text.rstrip("dDfF")) if is_float else int(text.rstrip("lL"))
        if text[-1] in "fF":
            number = struct.unpack("f", struct.pack("f", number))[0]
        return ("literal", Long(number) if text[-1] in "lL" else number)
    if word.kind in ("text", "char"):
        return ("literal", unescaped(text[1:-1]))
    if word.kind == "long_text":
        return ("literal", text[3:-3])
    start = text.index('"')
    is_long = word.kind == "long_template"
    return template(text[start + 3 : -3] if is_long else unescaped(text[start + 1 : -1]))


def has_placeholder(node: object) -> bool:
    """Tell whether an expression is a function of `_`."""
    if not isinstance(node, tuple | list):
        return False
    if node == PLACEHOLDER:
        return True
    if node and node[0] in ("function", "later", "block"):
        return False
    if node and node[0] == "call":
        return has_placeholder(node[1])
    return any(has_placeholder(each) for each in node[1:])


def unescaped(text: str) -> str:
    letters = {"n": "\n", "t": "\t", "r": "\r"}

    def letter(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else letters.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", letter, text)


def template(text: str) -> Node:
    """Parse a text with `$name` and `${expression}`."""
    parts: list[Node] = []
    at = 0
    while at < len(text):
        dollar = text.find("$", at)
        if dollar < 0:
            parts.append(("literal", text[at:]))
            break
        parts.append(("literal", text[at:dollar]))
        name = re.compile(r"[A-Za-z_][A-Za-z_0-9]*").match(text, dollar + 1)
        if text[dollar + 1 : dollar + 2] == "{":
            end = _closing(text, dollar + 1)
            parts.append(Parser(text[dollar + 2 : end]).expression())
            at = end + 1
        elif name is not None:
            parts.append(("name", name[0]))
            at = name.end()
        else:
            parts.append(("literal", "$"))
            at = dollar + (2 if text[dollar + 1 : dollar + 2] == "$" else 1)
    return ("template", parts)


def _closing(text: str, at: int) -> int:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    raise Untranslated("open brace in a text")


def members(source: str) -> list[str]:
    """Return the members of the classes of a file, each as text: what stands two columns in."""
    words = tokens_of(source)
    starts: list[int] = []
    depth, inside = 0, False
    for word in words:
        column = word.at - (source.rfind("\n", 0, word.at) + 1)
        if word.kind == "sign" and word.text in "}":
            inside = inside and column > 0
        is_member = inside and column == 2 and depth == 1 and word.text not in ("}", ")", "{")
        if is_member and word.kind not in ("newline", "end"):
            starts.append(word.at)
        if word.kind == "sign":
            depth += (word.text in ("{", "(", "[")) - (word.text in ("}", ")", "]"))
            if depth == 0 and word.text == "}":
                starts.append(word.at)
            if word.text == "{" and depth == 1:
                inside = True
    starts = [at for n, at in enumerate(starts) if n == 0 or not _is_annotation(source[starts[n - 1] : at])]
    return [source[a:b] for a, b in zip(starts, [*starts[1:], len(source)], strict=True) if source[a] != "}"]


def _is_annotation(text: str) -> bool:
    return text.startswith("@") and "\n" not in text.strip()
