//! What happens in the auction house: each event from the number of its row alone.

use super::super::arrival::Arrivals;
use super::super::quantile::exp;
use super::super::random::{CounterStream, below, high, low, unit};

/// Rows of a block, and how many of them are auctions, behind one person.
const BLOCK: u64 = 50;
const AUCTIONS: u64 = 3;

/// Numbers of the first person, auction and category.
const FIRST_ID: i64 = 1_000;
const FIRST_CATEGORY: i64 = 10;
const CATEGORIES: u32 = 5;

/// How many auctions, and how many people, share a hot one.
pub(super) const HOT_AUCTIONS: usize = 100;
const HOT_PEOPLE: u64 = 100;
/// One choice in so many is not the hot one.
const AUCTION_COINS: u32 = 2;
const PERSON_COINS: u32 = 4;
const CHANNEL_COINS: u32 = 2;

/// Auctions that are open at a time, people who are active, and how many of each are named before
/// they exist.
const OPEN_AUCTIONS: u64 = 100;
const ACTIVE_PEOPLE: u64 = 1_000;
const LEAD: u64 = 10;

/// Channels that bids come through; the first few are hot.
pub(super) const CHANNELS: u32 = 10_004;
const HOT_CHANNELS: u32 = 4;

/// The natural logarithm of 10^6, the largest price over the smallest.
const PRICE_DECADES: f64 = 13.815_510_557_964_274;

/// One row.
pub(super) enum Event {
    /// Somebody joins.
    Person {
        id: i64,
        name: i32,
        city: i32,
        state: i32,
        card: [u32; 4],
    },
    /// Somebody offers something.
    Auction(Auction),
    /// Somebody bids.
    Bid {
        auction: i64,
        bidder: i64,
        price: i64,
        channel: i32,
    },
}

impl Event {
    /// The number of the kind, as in the benchmark.
    pub(super) fn kind(&self) -> i32 {
        match self {
            Event::Person { .. } => 0,
            Event::Auction(_) => 1,
            Event::Bid { .. } => 2,
        }
    }
}

/// Something that is offered.
pub(super) struct Auction {
    pub(super) id: i64,
    pub(super) initial_bid: i64,
    pub(super) reserve: i64,
    pub(super) expires_ms: i64,
    pub(super) seller: i64,
    pub(super) category: i64,
}

/// The row of auction number `auction`, from 0.
pub(super) fn row_of_auction(auction: u64) -> u64 {
    auction / AUCTIONS * BLOCK + 1 + auction % AUCTIONS
}

/// Every event of a stream.
pub(super) struct Events {
    draws: CounterStream,
    arrivals: Arrivals,
}

impl Events {
    /// Events by the draws of a stream.
    pub(super) fn new(draws: CounterStream, arrivals: Arrivals) -> Self {
        Events { draws, arrivals }
    }

    /// The event of row number `row`.
    pub(super) fn at(&self, row: u64) -> Event {
        let (block, place) = (row / BLOCK, row % BLOCK);
        let draw = |lane| self.draws.row_draw(row, lane);
        match place {
            0 => Event::Person {
                id: id(block),
                name: below(high(draw(0)), 99).cast_signed(),
                city: below(low(draw(0)), 10).cast_signed(),
                state: below(high(draw(1)), 6).cast_signed(),
                card: [high(draw(2)), low(draw(2)), high(draw(3)), low(draw(3))]
                    .map(|bits| below(bits, 10_000)),
            },
            1..=AUCTIONS => Event::Auction(self.auction(row, block * AUCTIONS + place - 1)),
            _ => Event::Bid {
                auction: self.pick_auction(draw(0), block),
                bidder: pick_person(draw(1), block, 1),
                price: price(low(draw(2))),
                channel: match below(high(draw(3)), CHANNEL_COINS) {
                    0 => HOT_CHANNELS + below(low(draw(3)), CHANNELS - HOT_CHANNELS),
                    _ => below(low(draw(3)), HOT_CHANNELS),
                }
                .cast_signed(),
            },
        }
    }

    /// Auction number `auction` (from 0), which is row number `row`.
    pub(super) fn auction(&self, row: u64, auction: u64) -> Auction {
        let draw = |lane| self.draws.row_draw(row, lane);
        let initial_bid = price(high(draw(0)));
        // As long as it takes, on average, until so many auctions are open.
        let ahead = row + OPEN_AUCTIONS * BLOCK / AUCTIONS;
        let horizon_ms = self.arrivals.since_start_ms(ahead) - self.arrivals.since_start_ms(row);
        let most_ms = u32::try_from(horizon_ms * 2).unwrap_or(u32::MAX).max(1);
        let open_ms = 1 + i64::from(below(low(draw(1)), most_ms));
        Auction {
            id: id(auction),
            initial_bid,
            reserve: initial_bid + price(low(draw(0))),
            expires_ms: self.arrivals.happened_ms(row) + open_ms,
            seller: pick_person(draw(2), row / BLOCK, 0),
            category: FIRST_CATEGORY + i64::from(below(high(draw(1)), CATEGORIES)),
        }
    }

    /// The hot auction, or one of the open ones.
    fn pick_auction(&self, draw: u64, block: u64) -> i64 {
        let last = block * AUCTIONS + AUCTIONS - 1;
        let hot = HOT_AUCTIONS as u64;
        if below(high(draw), AUCTION_COINS) > 0 {
            return id(last / hot * hot);
        }
        let first = last.saturating_sub(OPEN_AUCTIONS);
        id(first + among(low(draw), last - first + 1 + LEAD))
    }
}

/// A hot person, the `nth` of the latest hundred, or one of the active ones.
fn pick_person(draw: u64, last: u64, nth: u64) -> i64 {
    if below(high(draw), PERSON_COINS) > 0 {
        return id(last / HOT_PEOPLE * HOT_PEOPLE + nth);
    }
    let active = (last + 1).min(ACTIVE_PEOPLE);
    id(last + 1 - active + among(low(draw), active + LEAD))
}

/// A number in `0..count`, which is below 2^32.
fn among(bits: u32, count: u64) -> u64 {
    u64::from(below(bits, u32::try_from(count).unwrap_or(u32::MAX)))
}

fn id(number: u64) -> i64 {
    FIRST_ID + number.cast_signed()
}

/// A price in cents: 1 to a million dollars, all orders of magnitude alike.
fn price(bits: u32) -> i64 {
    (exp(unit(bits) * PRICE_DECADES) * 100.0).round() as i64
}
