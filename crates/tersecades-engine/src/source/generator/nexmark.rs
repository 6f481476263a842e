//! The stream of the Nexmark benchmark: people who join an auction house, their auctions, and bids.
//!
//! Of fifty rows one is a person, three are auctions and the rest bids, in one table: columns of
//! the other kinds are null. Half of the bids go to the hot auction, the first of the latest
//! hundred, and three quarters come from one hot bidder in a thousand, as in the reference
//! generator, whose padding `extra` is left out. The truth file names every hot auction.
//!
//! ```text
//! row  = block * 50 + place    place 0: person, 1 to 3: auctions, 4 to 49: bids
//! last = how many people and auctions there are so far, from the row alone
//! ```

mod event;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use self::event::{CHANNELS, Event, Events, HOT_AUCTIONS, row_of_auction};
use super::arrival::{Arrivals, JITTER_MAX, START_MS, rate};
use super::grid::{Grid, GridModel};
use super::kind::GeneratorKind;
use super::name::{coded, coded_type, letters, names};
use super::parameter::{Arguments, Parameter};
use super::random::CounterStream;
use super::truth::{Part, object};

/// The line of this generator in [`super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "nexmark",
    summary: "people, auctions and bids of an auction house: the Nexmark benchmark",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| {
        let model = Model::new(rows, seed, arguments)?;
        Ok(Box::new(Grid::new(model, rows)))
    },
};

const PARAMETERS: &[Parameter] = &[START_MS, rate("10k"), JITTER_MAX];

const DELAY_STREAM: u64 = 400;
const EVENT_STREAM: u64 = 401;
const LETTER_STREAM: u64 = 402;
const PATH_STREAM: u64 = 403;

/// Draws of letters that a row owns, and those of one text.
const LETTERS_PER_ROW: u64 = 64;
const LETTERS_PER_TEXT: u64 = 16;

const FIRST_NAMES: [&str; 11] = [
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
];
const LAST_NAMES: [&str; 9] = [
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
];
const CITIES: [&str; 10] = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
];
const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];

/// People, auctions and bids, and what they are called.
struct Model {
    arrivals: Arrivals,
    events: Events,
    letters: CounterStream,
    names: Arc<StringArray>,
    cities: Arc<StringArray>,
    states: Arc<StringArray>,
    channels: Arc<StringArray>,
    urls: Arc<StringArray>,
}

impl Model {
    fn new(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<Self> {
        let listed = |texts: &[&str]| Arc::new(texts.iter().copied().map(Some).collect());
        let (first, last) = (FIRST_NAMES.len() as u32, LAST_NAMES.len() as u32);
        let name = |it: u32| {
            let first = FIRST_NAMES[(it / last) as usize];
            format!("{first} {}", LAST_NAMES[(it % last) as usize])
        };
        let channel = |it: u32| match HOT_CHANNELS.get(it as usize) {
            Some(hot) => (*hot).to_owned(),
            None => format!("channel-{}", it as usize - HOT_CHANNELS.len()),
        };
        let paths = CounterStream::new(seed, PATH_STREAM);
        let url = |it: u32| {
            let part = |at: u64| letters(paths, (u64::from(it) * 3 + at) * LETTERS_PER_TEXT, 5, 5);
            let path = format!("{}/{}/{}", part(0), part(1), part(2));
            format!("https://www.nexmark.com/{path}/item.htm?query=1&channel_id={it}")
        };
        let arrivals = Arrivals::new(rows, CounterStream::new(seed, DELAY_STREAM), arguments)?;
        Ok(Model {
            arrivals,
            events: Events::new(CounterStream::new(seed, EVENT_STREAM), arrivals),
            letters: CounterStream::new(seed, LETTER_STREAM),
            names: names(first * last, name),
            cities: listed(&CITIES),
            states: listed(&STATES),
            channels: names(CHANNELS, channel),
            urls: names(CHANNELS, url),
        })
    }

    fn text(&self, row: u64, text: u64, least: u32, most: u32) -> String {
        let counter = row * LETTERS_PER_ROW + text * LETTERS_PER_TEXT;
        letters(self.letters, counter, least, most)
    }

    fn push(&self, columns: &mut Columns, row: u64) {
        let event = self.events.at(row);
        columns.kind.push(event.kind());
        columns.timestamp.push(self.arrivals.happened_ms(row));
        let (mut numbers, mut expires) = ([None; NUMBERS], None);
        let (mut codes, mut texts) = ([None; CODES], [const { None }; TEXTS]);
        match event {
            Event::Person {
                id,
                name,
                city,
                state,
                card,
            } => {
                numbers[0] = Some(id);
                codes[..3].copy_from_slice(&[Some(name), Some(city), Some(state)]);
                let (user, host) = (self.text(row, 0, 3, 7), self.text(row, 1, 3, 5));
                texts[0] = Some(format!("{user}@{host}.com"));
                texts[1] = Some(card.map(|part| format!("{part:04}")).join(" "));
            }
            Event::Auction(auction) => {
                let money = [auction.initial_bid, auction.reserve];
                let [initial_bid, reserve] = money.map(Some);
                let (seller, category) = (Some(auction.seller), Some(auction.category));
                numbers[1..6].copy_from_slice(&[
                    Some(auction.id),
                    initial_bid,
                    reserve,
                    seller,
                    category,
                ]);
                expires = Some(auction.expires_ms);
                texts[2] = Some(self.text(row, 0, 3, 20));
                texts[3] = Some(self.text(row, 2, 3, 100));
            }
            Event::Bid {
                auction,
                bidder,
                price,
                channel,
            } => {
                numbers[6..].copy_from_slice(&[Some(auction), Some(bidder), Some(price)]);
                codes[3..].copy_from_slice(&[Some(channel), Some(channel)]);
            }
        }
        columns.expires.push(expires);
        push_each(&mut columns.numbers, numbers);
        push_each(&mut columns.codes, codes);
        push_each(&mut columns.texts, texts);
    }
}

const NUMBERS: usize = 9;
const CODES: usize = 5;
const TEXTS: usize = 4;

/// The columns of a batch while its rows are made, in the order of [`schema`] by type.
#[derive(Default)]
struct Columns {
    kind: Vec<i32>,
    timestamp: Vec<i64>,
    expires: Vec<Option<i64>>,
    numbers: [Vec<Option<i64>>; NUMBERS],
    codes: [Vec<Option<i32>>; CODES],
    texts: [Vec<Option<String>>; TEXTS],
}

fn push_each<T, const N: usize>(columns: &mut [Vec<T>; N], values: [T; N]) {
    columns
        .iter_mut()
        .zip(values)
        .for_each(|(column, value)| column.push(value));
}

impl GridModel for Model {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch> {
        let mut columns = Columns::default();
        range.for_each(|row| self.push(&mut columns, row));
        let number = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let text = |values: Vec<Option<String>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let numbers = columns.numbers.map(number);
        let [
            person,
            auction_id,
            initial_bid,
            reserve,
            seller,
            category,
            auction,
            bidder,
            price,
        ] = numbers;
        let [name, city, state, channel, url] = columns.codes;
        let [email, card, item, description] = columns.texts.map(text);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(columns.kind)),
            Arc::new(TimestampMillisecondArray::from(columns.timestamp)),
            person,
            coded(name, &self.names)?,
            email,
            card,
            coded(city, &self.cities)?,
            coded(state, &self.states)?,
            auction_id,
            item,
            description,
            initial_bid,
            reserve,
            Arc::new(TimestampMillisecondArray::from(columns.expires)),
            seller,
            category,
            auction,
            bidder,
            price,
            coded(channel, &self.channels)?,
            coded(url, &self.urls)?,
        ];
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }

    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()> {
        for hot in (0..).step_by(HOT_AUCTIONS) {
            let row = row_of_auction(hot);
            if row >= rows {
                break;
            }
            let auction = self.events.auction(row, hot);
            let next = row_of_auction(hot + HOT_AUCTIONS as u64);
            let record = object(&[
                ("kind", Part::Text("hot_auction")),
                ("auction", Part::Whole(auction.id)),
                ("seller", Part::Whole(auction.seller)),
                ("category", Part::Whole(auction.category)),
                ("from_ms", Part::Whole(self.arrivals.at_ms(row))),
                ("to_ms", Part::Whole(self.arrivals.at_ms(next))),
            ]);
            writeln!(out, "{record}")?;
        }
        Ok(())
    }
}

/// Schema of the stream: what it is, when it happened, and the columns of people, auctions and
/// bids.
///
/// # Source Tucker, Tufte, Papadimos, Maier: "NEXMark: a benchmark for queries over data streams"
/// (2002), and the generator of Apache Beam.
pub fn schema() -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Millisecond, None);
    let always = [("event_type", DataType::Int32), ("timestamp", time())];
    let of_some = [
        ("person_id", DataType::Int64),
        ("name", coded_type()),
        ("email_address", DataType::Utf8),
        ("credit_card", DataType::Utf8),
        ("city", coded_type()),
        ("state", coded_type()),
        ("auction_id", DataType::Int64),
        ("item_name", DataType::Utf8),
        ("description", DataType::Utf8),
        ("initial_bid", DataType::Int64),
        ("reserve", DataType::Int64),
        ("expires", time()),
        ("seller", DataType::Int64),
        ("category", DataType::Int64),
        ("auction", DataType::Int64),
        ("bidder", DataType::Int64),
        ("price", DataType::Int64),
        ("channel", coded_type()),
        ("url", coded_type()),
    ];
    let always = always.map(|(name, data_type)| Field::new(name, data_type, false));
    let of_some = of_some.map(|(name, data_type)| Field::new(name, data_type, true));
    Arc::new(Schema::new([&always[..], &of_some].concat()))
}
