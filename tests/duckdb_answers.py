"""Answers SQL questions with DuckDB, the independent engine of the real-data tests.

Usage: duckdb_answers.py FOLDER

FOLDER holds `table.sql`, a query whose result becomes the table `stream`, and one NAME.sql for
each question over it. The answer to NAME.sql is written to NAME.parquet.
"""

import pathlib
import sys

import duckdb


def main(folder: pathlib.Path) -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"CREATE TABLE stream AS {(folder / 'table.sql').read_text()}")
    for question in sorted(folder.glob("*.sql")):
        if question.name == "table.sql":
            continue
        answer = question.with_suffix(".parquet")
        connection.execute(f"COPY ({question.read_text()}) TO '{answer}' (FORMAT parquet)")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
