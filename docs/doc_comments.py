"""Doxygen's input filter: the headers' plain comments as documentation comments.

doc_comments.py HEADER     writes the header with its comments rewritten to stdout

| comment | belongs to |
|---|---|
| the first of the file | the file |
| after code on the same line | the declaration on that line |
| on separate lines, directly above a declaration | that declaration; in C also the following ones up to the next comment or empty line |

Comments in function bodies and comments followed by an empty line stay as they are. The text is prose: characters that
Doxygen would read as a command or as HTML are escaped, except between backticks. Lists and tables are Markdown; indented columns stay as they are.
"""

import re
import sys
import textwrap

TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|(?P<directive>(?m:^)[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)|(?P<string>"(?:[^"\\\n]|\\.)*"|R"\((?:.*?)\)")"""
    r"""|(?P<char>(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)*')|(?P<newline>\n)|(?P<space>[ \t]+)|(?P<punctuation>[{};])|(?P<code>[^\s{};"'/\#]+|.)""",
    re.DOTALL | re.VERBOSE,
)
SCOPE = re.compile(r'(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|class|union|enum)\b|(?:inline\s+)?namespace\b|extern\s+"C"', re.DOTALL)
NO_CODE = re.compile(r"ST_BEGIN|ST_END|\b(?:public|private|protected):")
TOOLS = ("clang-format", "NOLINT")


def escaped(text):
    """Prose for Doxygen. Indented lines that do not continue a list item, such as columns, are copied verbatim."""
    lines, columns, in_list = [], [], False
    for line in [*text.split("\n"), None]:
        if line is not None and line.startswith("  ") and not in_list:
            columns.append(line)
            continue
        if columns:
            lines += ["@verbatim", *columns, "@endverbatim"]
            columns = []
        if line is not None:
            in_list = bool(re.match(r" *(?:-|\d+\.) ", line)) or (in_list and line.startswith("  "))
            parts = re.split(r"(`[^`]*`)", line)
            lines.append("".join(part if i % 2 else re.sub(r"([\\@<>&#%*])", r"\\\1", part) for i, part in enumerate(parts)))
    return "\n".join(lines)


def words_of(comment):
    """A comment's text without its delimiters and decoration."""
    if comment.startswith("//"):
        return re.sub(r"(?m)^[ \t]*///?<? ?", "", comment).rstrip()
    lines = comment[2:-2].lstrip("*<").splitlines()
    rest = "\n".join(lines[1:])
    starred = re.fullmatch(r"(?:[ \t]*\*.*\n?)*\s*", rest)
    rest = re.sub(r"(?m)^[ \t]*\* ?", "", rest) if starred else textwrap.dedent(rest)
    return f"{lines[0].strip()}\n{rest}".strip()


def joined_lines(tokens):
    """Tokens as (kind, text, column), with consecutive line comments of the same column joined."""
    column, joined = 0, []
    for kind, text in tokens:
        if kind == "line" and len(joined) > 1 and joined[-1][0] in ("newline", "space"):
            last = next((i for i in range(len(joined) - 1, -1, -1) if joined[i][0] not in ("newline", "space")), -1)
            between = "".join(token[1] for token in joined[last + 1 :])
            if last >= 0 and joined[last][0] == "line" and joined[last][2] == column and between.count("\n") == 1:
                joined[last] = ("line", f"{joined[last][1]}\n{text}", column)
                del joined[last + 1 :]
                column += len(text)
                continue
        joined.append((kind, text, column))
        column = len(text) - text.rindex("\n") - 1 if "\n" in text else column + len(text)
    return joined


class Header:
    def __init__(self, text, is_c):
        self.tokens = joined_lines([(match.lastgroup, match.group()) for match in TOKEN.finditer(text)])
        self.is_c = is_c
        self.scopes = []  # for each open brace: whether it encloses declarations
        self.opened = self.statement = ""  # the code before the last {; code since the last ; { or }
        self.line = ""  # code of this line
        self.own = self.shared = ""  # the comment of this declaration; the comment that the next one shares
        self.file_is_documented = False

    def rewritten(self):
        return "".join(self.token(i, *token) for i, token in enumerate(self.tokens))

    def token(self, i, kind, text, _column):
        if kind in ("block", "line"):
            return self.comment(i, text)
        if kind == "newline":
            self.line = ""
            self.statement = self.statement.removeprefix("}")
            if self.after(i).startswith("\n"):
                self.shared = ""
            return text
        if kind in ("space", "directive"):
            return text
        begins = not NO_CODE.sub("", self.statement).strip()
        shared = self.shared if self.is_c and begins and kind == "code" and not self.scopes and not self.destroys(i) else ""
        if shared:
            self.own = shared
        self.line += text
        if text == "{":
            self.own = self.shared = ""
            self.scopes.append(bool(SCOPE.match(NO_CODE.sub("", self.statement).strip())))
            self.opened, self.statement = self.statement, ""
        elif text == "}":
            self.scopes and self.scopes.pop()
            self.statement = "}"
        elif text == ";":
            self.statement = ""
            self.shared, self.own = self.own, ""
        else:
            self.statement += text if kind != "code" else f"{text} "
        return f"/** {shared} */\n{text}" if shared else text

    def comment(self, i, text):
        words = words_of(text)
        if not all(self.scopes) or words.startswith(TOOLS):
            return text
        words = escaped(words)
        if not self.file_is_documented:
            self.file_is_documented = True
            return f"/** @file\n{words} */"
        if self.line.endswith("{"):  # describes the struct that begins here
            return f"/** @struct {' '.join(re.findall('struct (.*) ', self.opened))}\n{words} */"
        if self.line:
            return text if re.fullmatch(r"[};\s]*", self.line) else f"/**< {words} */"
        self.own = self.shared = ""
        if text.startswith("//") and not text.startswith("///"):
            return text
        if self.after(i).startswith("\n\n"):
            return text
        self.own = words
        return f"/** {words} */"

    def destroys(self, i):
        """Whether the function that begins here destroys a handle: it does not share the comment of the function that creates it."""
        return re.search(r"_destroy\(", "".join(token[1] for token in self.tokens[i : i + 6]))

    def after(self, i):
        rest = "".join(token[1] for token in self.tokens[i + 1 : i + 5])
        return re.sub(r"[ \t]+\n", "\n", rest)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(Header(header.read(), sys.argv[1].endswith(".h")).rewritten())
