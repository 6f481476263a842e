"""Flink SQL on the streaming classics: a local cluster in one process, from the file to its sink.

Timed runs are of the streaming mode, into a sink that drops rows. Answers are written in batch
mode, where every query gives its final rows alone.
"""

import time

import stream_queries as queries
from flink_session import session
from stream_runner import arguments, measure

options = arguments()
TYPES = {"whole": "BIGINT", "text": "STRING", "cents": "DOUBLE", "time": "TIMESTAMP(3)"}
NEXMARK = (
    "event_type INT, `timestamp` TIMESTAMP(3), person_id BIGINT, name STRING, "
    "email_address STRING, credit_card STRING, city STRING, state STRING, auction_id BIGINT, "
    "item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT, auction BIGINT, bidder BIGINT, "
    "price BIGINT, channel STRING, url STRING"
)
YAHOO = (
    "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, "
    "`timestamp` TIMESTAMP(3), ip_address STRING"
)
WATERMARK = ", WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '1' SECOND"

flink = session(options.threads, streaming=not options.answers)


def create(name, columns, path):
    source = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path.resolve()}'"
    flink.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({source})")


create("nexmark", NEXMARK + WATERMARK, options.data / "nexmark.parquet")
create("yahoo", YAHOO + WATERMARK, options.data / "yahoo.parquet")
create("campaigns", "ad_id STRING, campaign_id STRING", options.data / "campaigns.parquet")
for view in queries.VIEWS:
    flink.execute_sql(f"CREATE TEMPORARY VIEW {view[0]} AS {queries.view(*view, quote='`')}")
flink.execute_sql(
    "CREATE TEMPORARY VIEW events AS SELECT ad_id, event_type, `timestamp` AS ts FROM yahoo"
)
runs = iter(range(1_000_000))


def run(query, target):
    """Seconds of one run; results go to the folder `target`, if there is one."""
    columns = [f"c{at} {TYPES[kind]}" for at, kind in enumerate(queries.ANSWERS[query])]
    sink = f"sink_{next(runs)}"
    into = "'connector' = 'blackhole'"
    if target:
        into = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = '{target.resolve()}'"
    flink.execute_sql(f"CREATE TABLE {sink} ({', '.join(columns)}) WITH ({into})")
    start = time.perf_counter()
    job = flink.execute_sql(f"INSERT INTO {sink} {queries.SQL[query]}")
    try:
        job.wait(options.limit * 1000)
    except Exception as error:
        if "TimeoutException" not in str(error):
            raise
        job.get_job_client().cancel().result()
        raise TimeoutError from error
    return time.perf_counter() - start


measure("flink", run, options, "csv")
