"""Answers SQL statements with DuckDB, the independent engine of the SQL tests.

Usage: duckdb_sql.py INPUT OUTPUT

INPUT holds statements, each after a line `%%`; a statement that starts with `%reset` drops all
tables. OUTPUT gets for each of them a line `%% ok` with the rows, cells separated by tabs, or a
line `%% error` with the message. NULL is `NULL`, empty text `(empty)`.
"""

import datetime
import decimal
import pathlib
import sys

import duckdb


def cell(value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case decimal.Decimal():
            return str(value)
        case datetime.datetime():
            text = value.isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
        case bytes():
            return value.hex()
        case "":
            return "(empty)"
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def fresh() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET error_on_division_by_zero = false")
    # The order of PostgreSQL, which the engine follows.
    connection.execute("SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'")
    return connection


def main(source: pathlib.Path, target: pathlib.Path) -> None:
    connection = fresh()
    with target.open("w", encoding="utf-8") as out:
        for statement in source.read_text(encoding="utf-8").split("%%\n")[1:]:
            if statement.startswith("%reset"):
                connection = fresh()
                out.write("%% ok\n")
                continue
            try:
                rows = connection.execute(statement).fetchall()
            except Exception as error:  # whatever DuckDB raises is an answer
                first = str(error).strip().splitlines()[0]
                out.write(f"%% error\n{first}\n")
                continue
            out.write("%% ok\n")
            for row in rows:
                out.write("\t".join(cell(value) for value in row) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
