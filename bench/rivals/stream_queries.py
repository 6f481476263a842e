"""The Yahoo streaming benchmark and Nexmark q0 to q8 as SQL, over generated streams.

`SQL` is what our engine and Flink both run. DuckDB has no windows of streams: its texts stand
apart, and compute window starts from milliseconds. `ANSWERS` says how the columns of an answer
compare.

q6 looks back over the last ten auctions of each seller by when they expire; the benchmark says when
they close, which is the same. Flink runs no such window over a join, so it has no q6.
"""

# Columns of each answer: text, whole numbers, times, and floats that compare to so many digits.
ANSWERS = {
    "yahoo": ["time", "text", "whole"],
    "q0": ["whole", "whole", "whole", "time", "text"],
    "q1": ["whole", "whole", "cents", "time", "text"],
    "q2": ["whole", "whole"],
    "q3": ["text", "text", "text", "whole"],
    "q4": ["whole", "cents"],
    "q5": ["time", "whole", "whole"],
    "q6": ["whole", "whole", "cents"],
    "q7": ["whole", "whole", "whole", "time"],
    "q8": ["whole", "text", "time"],
}

# Views of one kind each, as (name, number of the kind, columns).
VIEWS = [
    ("person", 0, ["person_id AS id", "name", "city", "state"]),
    ("auction", 1, ["auction_id AS id", "expires", "seller", "category"]),
    ("bid", 2, ["auction", "bidder", "price", "url"]),
]

SECONDS_10 = "INTERVAL '10' SECOND"
HOP = f"HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, {SECONDS_10})"
WINDOW = "window_start, window_end"


def tumble(table):
    return f"TUMBLE(TABLE {table}, DESCRIPTOR(ts), {SECONDS_10})"


WINNERS = (
    "SELECT a.id, a.seller, a.category, a.expires, max(b.price) AS final FROM auction a "
    "JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires "
    "GROUP BY a.id, a.seller, a.category, a.expires"
)
COUNTS = f"SELECT {WINDOW}, auction, count(*) AS num FROM {HOP} GROUP BY {WINDOW}, auction"

SQL = {
    "yahoo": f"SELECT window_start, campaign_id, count(*) AS seen FROM {tumble('events')} e "
    "JOIN campaigns c ON e.ad_id = c.ad_id WHERE e.event_type = 'view' "
    f"GROUP BY {WINDOW}, campaign_id",
    "q0": "SELECT auction, bidder, price, ts, url FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, ts, url FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
    "WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')",
    "q4": f"SELECT category, avg(CAST(final AS DOUBLE)) AS price FROM ({WINNERS}) w "
    "GROUP BY category",
    "q5": f"SELECT c.window_start, c.auction, c.num FROM ({COUNTS}) c JOIN (SELECT {WINDOW}, "
    f"max(num) AS most FROM ({COUNTS}) n GROUP BY {WINDOW}) m "
    "ON c.window_start = m.window_start AND c.window_end = m.window_end WHERE c.num >= m.most",
    "q6": "SELECT seller, id, avg(CAST(final AS DOUBLE)) OVER (PARTITION BY seller "
    "ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS price "
    f"FROM ({WINNERS}) w",
    "q7": f"SELECT b.auction, b.price, b.bidder, b.ts FROM bid b JOIN (SELECT {WINDOW}, "
    f"max(price) AS most FROM {tumble('bid')} GROUP BY {WINDOW}) w "
    "ON b.price = w.most AND b.ts >= w.window_start AND b.ts < w.window_end",
    "q8": f"SELECT p.id, p.name, p.window_start FROM (SELECT id, name, {WINDOW} "
    f"FROM {tumble('person')} GROUP BY id, name, {WINDOW}) p JOIN (SELECT seller, {WINDOW} "
    f"FROM {tumble('auction')} GROUP BY seller, {WINDOW}) a ON p.id = a.seller "
    "AND p.window_start = a.window_start AND p.window_end = a.window_end",
}


def floored(seconds):
    return f"make_timestamp_ms(epoch_ms(ts) // {seconds}000 * {seconds}000)"


SLIDES = (
    f"SELECT {floored(2)} - to_seconds(2 * back) AS window_start, auction, count(*) AS num "
    "FROM bid, range(5) r(back) GROUP BY ALL"
)
DUCKDB = SQL | {
    "yahoo": f"SELECT {floored(10)} AS window_start, campaign_id, count(*) AS seen "
    "FROM events e JOIN campaigns c ON e.ad_id = c.ad_id WHERE e.event_type = 'view' GROUP BY ALL",
    "q5": f"WITH counts AS MATERIALIZED ({SLIDES}) SELECT window_start, auction, num FROM counts "
    "JOIN (SELECT window_start, max(num) AS most FROM counts GROUP BY ALL) USING (window_start) "
    "WHERE num >= most",
    "q7": f"WITH best AS (SELECT {floored(10)} AS start, max(price) AS most FROM bid GROUP BY ALL) "
    "SELECT auction, price, bidder, ts FROM bid JOIN best "
    f"ON price = most AND {floored(10)} = start",
    "q8": f"SELECT id, name, start FROM (SELECT DISTINCT id, name, {floored(10)} AS start "
    f"FROM person) JOIN (SELECT DISTINCT seller AS id, {floored(10)} AS start FROM auction) "
    "USING (id, start)",
}
ENGINES = {"tersecades": SQL, "duckdb": DUCKDB, "flink": {q: SQL[q] for q in SQL if q != "q6"}}


def view(name, kind, columns, quote='"'):
    """The SELECT of one view over the table `nexmark`."""
    time = f"{quote}timestamp{quote} AS ts"
    return f"SELECT {', '.join(columns)}, {time} FROM nexmark WHERE event_type = {kind}"
