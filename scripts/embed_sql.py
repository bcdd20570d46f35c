#!/usr/bin/env python3
"""Turns the files of sql/ into C strings.

    embed_sql.py DIR OUT.c OUT.h DEPFILE
    embed_sql.py --print DIR PATH        the text of one file as the database gets it; MODULE/queries.sql:NAME for a query

What a file becomes depends on where it lies:

    MODULE/queries.sql          a const char sql_MODULE_NAME[] for each `-- name: NAME`, without the comment that follows it
    MODULE/tables.sql           a part of Migration 1, in the order of schema.txt, word for word
    migrations/NNNN_NAME.sql    a Migration, numbered from 2 without gaps, word for word
    MODULE/NAME.sql             an SqlDefinition, in the order of schema.txt, word for word

schema.txt is the manifest of tables and definitions: one path per line, # starts a comment. It exists because a view
must come after the function it calls, and an order that is written down can be read. "PATH unless extension NAME" is a
definition that is left out of databases where that extension is installed. "PATH view NAME" is a view: its text gets a
comment on the view with the checksum of the text, by which the migrator knows that it need not be replaced.

plan.txt has named profiles of planner settings; "set plan = NAME" in a definition stands for the settings of one.
"""
import hashlib
import re
import sys
from pathlib import Path

MANIFEST = "schema.txt"
TABLES = "tables.sql"
QUERIES = "queries.sql"
PLANS = "plan.txt"
PLAN_USE = re.compile(r"\bset plan = (\w+)")
NAME = re.compile(r"[a-z][a-z0-9_]*")
QUERY_HEAD = re.compile(r"^-- name:(.*)$", re.MULTILINE)
MIGRATION = re.compile(r"(\d{4})_([a-z][a-z0-9_]*)")
DEFINITION = re.compile(r"(\S+)(?:\s+(unless\s+extension|view)\s+([a-z][a-z0-9_.]*))?")


class SqlError(Exception):
    """The tree is not as described above."""


def files_list(root):
    """Every .sql file, as sorted relative paths."""
    return sorted(path.relative_to(root) for path in root.rglob("*.sql"))


def queries_find(root):
    """[(C name, text)] of the statements that C sends."""
    found = []
    for path in files_list(root):
        if path.name == QUERIES:
            queries = queries_split(path, (root / path).read_text(encoding="utf-8"))
            found += [(f"sql_{path.parts[0]}_{name}", text) for name, text, _ in queries]
    return found


def queries_split(path, text):
    """[(name, statement, line)] of one queries.sql."""
    parts = QUERY_HEAD.split(text)
    if head_strip(parts[0]):
        raise SqlError(f'"{path}" has a statement before the first "-- name: NAME"')
    found, line = [], parts[0].count("\n") + 1
    for name, part in zip(map(str.strip, parts[1::2]), parts[2::2]):
        if not NAME.fullmatch(name) or not NAME.fullmatch(path.parts[-2]):
            raise SqlError(f'{path}:{line}: "{name}" does not make a C name: use lower case, digits and underscores')
        if name in (known for known, _, _ in found):
            raise SqlError(f'{path}:{line}: a second query with the name "{name}"')
        statement = head_strip(part)
        if not statement:
            raise SqlError(f'{path}:{line}: "{name}" has no statement')
        found.append((name, statement, line))
        line += part.count("\n")
    return found


def head_strip(text):
    """The statement without the comment at its head, so that it is short on the wire and in pg_stat_statements."""
    lines = text.splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("--")):
        lines.pop(0)
    return "\n".join(lines).rstrip()


def migrations_find(root):
    """[(version, name, text)], refused unless the versions are 1, 2, 3 ... The first one is the tables of all modules."""
    tables = [path for path, _ in manifest_check(root) if path.endswith("/" + TABLES)]
    found = [(1, "tables", "\n".join((root / path).read_text(encoding="utf-8") for path in tables))] if tables else []
    for path in files_list(root):
        if path.parts[0] != "migrations":
            continue
        match = MIGRATION.fullmatch(path.stem)
        if len(path.parts) != 2 or not match:
            raise SqlError(f'"{path}" is not named like "migrations/0002_name.sql"')
        expected = len(found) + 1
        if int(match[1]) != expected:
            raise SqlError(f'"{path}" should have number {expected:04}: migrations count from 2 without gaps')
        found.append((expected, match[2], (root / path).read_text(encoding="utf-8")))
    return found


def manifest_check(root):
    """The entries of the manifest, which must name each file exactly once."""
    present = {path.as_posix() for path in files_list(root) if path.parts[0] != "migrations" and path.name != QUERIES}
    entries = manifest_read(root / MANIFEST)
    ordered = [path for path, _ in entries]
    for path in ordered:
        if path not in present:
            raise SqlError(f'{MANIFEST} names "{path}", which does not exist')
        if ordered.count(path) > 1:
            raise SqlError(f'{MANIFEST} names "{path}" twice')
    for path in sorted(present.difference(ordered)):
        raise SqlError(f'"{path}" is missing from {MANIFEST}')
    return entries


def definitions_find(root):
    """[(path, text, extension or None, view or None)] in the order of the manifest."""
    plans, found = plans_read(root / PLANS), []
    for path, (kind, name) in manifest_check(root):
        if path.endswith("/" + TABLES):
            continue
        text = plans_expand(path, (root / path).read_text(encoding="utf-8"), plans)
        views = re.findall(r"^create or replace view (\S+)", text, re.MULTILINE)
        if views != ([name] if kind == "view" else []):
            raise SqlError(f'"{path}" makes the views {views}: a view has a file of its own, and "view NAME" in {MANIFEST}')
        found.append((path, text, name if kind != "view" else None, name if kind == "view" else None))
    return found


def plans_read(path):
    """{name: settings}; a profile may name profiles above it."""
    plans = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        name, colon, entries = line.partition(":")
        if not colon or not NAME.fullmatch(name) or name in plans:
            raise SqlError(f'{PLANS} says "{line}": not "NAME: entries", or a name for the second time')
        settings = []
        for entry in map(str.strip, entries.split(",")):
            if entry not in plans and not re.fullmatch(r"[a-z_]+ = \w+", entry):
                raise SqlError(f'{PLANS}: "{entry}" of {name} is neither a setting nor a profile above it')
            settings += plans.get(entry, [entry])
        plans[name] = settings
    return plans


def plans_expand(path, text, plans):
    """The text with the settings of the profiles that it names."""
    def settings(match):
        if match[1] not in plans:
            raise SqlError(f'"{path}" names plan {match[1]}, which {PLANS} does not have')
        return " ".join(f"set {setting}" for setting in plans[match[1]])
    return PLAN_USE.sub(settings, text)


def manifest_read(path):
    """[(path, (kind, name))], both None without one."""
    if not path.exists():
        return []
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#", 1)[0].strip()
        match = DEFINITION.fullmatch(line)
        if match:
            entries.append((match[1], (match[2] and match[2].split()[0], match[3])))
        elif line:
            raise SqlError(f'{MANIFEST} says "{line}": not "PATH", "PATH unless extension NAME" or "PATH view NAME"')
    return entries


def strays_refuse(root):
    """A file that lies nowhere in particular would silently not be part of the program."""
    for path in files_list(root):
        if len(path.parts) != 2:
            raise SqlError(f'"{path}" belongs into a module: MODULE/NAME.sql')


def literal(text, indent):
    """One C string literal per line of text, so that sql.c reads like the file it came from."""
    lines = text.splitlines(keepends=True) or [""]
    return "\n".join(f'{indent}"{"".join(map(char_escape, line))}"' for line in lines)


def char_escape(char):
    named = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    if char in named:
        return named[char]
    if " " <= char <= "~":
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8"))


def table(c_type, name, rows):
    """A static array and its two fields in Schema."""
    if not rows:
        return "", f"    .{name} = NULL,\n    .{name[:-1]}_count = 0,\n"
    array = f"static const {c_type} {name}[] = {{\n" + "\n".join(rows) + "\n};\n\n"
    return array, f"    .{name} = {name},\n    .{name[:-1]}_count = {len(rows)},\n"


def checksum(text):
    """Computed here, because a program that hashed all texts at each start would spend milliseconds on it."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def name_render(name):
    return f'"{name}"' if name else "NULL"


def definition_render(path, text, extension, view):
    """A view remembers the text that it was made from."""
    comment = f"comment on view {view} is '{checksum(text)}';\n" if view else ""
    return (f'    {{ "{path}", "{checksum(text)}",\n{literal(text + comment, " " * 6)},\n'
            f'      {name_render(extension)}, {name_render(view)} }},')


def source_render(queries, migrations, definitions):
    migration_table, migration_fields = table(
        "Migration", "migrations",
        [f'    {{ {version}, "{name}", "{checksum(text)}",\n{literal(text, " " * 6)} }},'
         for version, name, text in migrations])
    definition_table, definition_fields = table(
        "SqlDefinition", "definitions",
        [definition_render(*definition) for definition in definitions])
    return ("/* sql.c - generated by scripts/embed_sql.py from sql/; do not edit. */\n"
            '#include "sql.h"\n\n#include <stddef.h>\n\n'
            + "".join(f"const char {name}[] =\n{literal(text, '    ')};\n\n" for name, text in queries)
            + migration_table + definition_table
            + "const Schema schema_embedded = {\n" + migration_fields + definition_fields + "};\n")


def header_render(queries):
    return ("/* sql.h - generated by scripts/embed_sql.py from sql/; do not edit. */\n"
            '#ifndef SQL_H\n#define SQL_H\n\n#include "pg/migrate.h"\n\n'
            + "".join(f"extern const char {name}[];\n" for name, _ in queries)
            + "extern const Schema schema_embedded;\n\n#endif\n")


def depfile_render(root, target):
    """What ninja watches: the files, and the folders too, so that a new file is noticed without a new meson setup."""
    folders = [root] + sorted(path for path in root.rglob("*") if path.is_dir())
    files = [root / path for path in files_list(root)]
    manifest = [root / name for name in (MANIFEST, PLANS) if (root / name).exists()]
    return f"{target}: " + " ".join(str(path).replace(" ", "\\ ") for path in folders + manifest + files) + "\n"


def write_if_changed(path, text):
    """An unchanged file keeps its time, so that nothing is compiled again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def text_find(root, path, query=None):
    """The text of a file, or of one of its queries."""
    text = (root / path).read_text(encoding="utf-8")
    if query:
        return next(statement for name, statement, _ in queries_split(Path(path), text) if name == query)
    return plans_expand(path, text, plans_read(root / PLANS))


def main(args):
    if args[:1] == ["--print"] and len(args) == 3:
        print(text_find(Path(args[1]), *args[2].split(":")), end="")
        return
    if len(args) != 4:
        raise SqlError("usage: embed_sql.py DIR OUT.c OUT.h DEPFILE")
    root, source, header, depfile = map(Path, args)
    strays_refuse(root)
    queries = queries_find(root)
    write_if_changed(source, source_render(queries, migrations_find(root), definitions_find(root)))
    write_if_changed(header, header_render(queries))
    depfile.write_text(depfile_render(root, source), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SqlError as error:
        sys.exit(f"embed_sql.py: {error}")
