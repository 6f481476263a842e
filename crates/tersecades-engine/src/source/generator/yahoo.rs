//! The stream of the Yahoo streaming benchmark: views, clicks and purchases of advertisements.
//!
//! Users, pages and advertisements are UUIDs; the table `campaigns` says which advertisements
//! belong to a campaign, ten each. Once a minute one campaign gets a burst: meanwhile a share of
//! all rows are about its advertisements. The truth file names every burst.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use super::arrival::{Arrivals, JITTER_MAX, START_MS, rate};
use super::grid::{Grid, GridModel, check_count};
use super::kind::GeneratorKind;
use super::name::{coded, coded_type, names, uuid};
use super::parameter::{Arguments, Parameter, ParameterKind};
use super::random::{Chance, CounterStream, below, high, low};
use super::truth::{Part, object};

/// The line of this generator in [`super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "yahoo",
    summary: "views and clicks of advertisements: the Yahoo streaming benchmark",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| {
        let model = Model::new(rows, seed, arguments)?;
        Ok(Box::new(Grid::new(model, rows)))
    },
};

const PARAMETERS: &[Parameter] = &[
    START_MS,
    rate("100k"),
    JITTER_MAX,
    Parameter {
        name: "campaigns",
        kind: ParameterKind::Count,
        default: "100",
        summary: "campaigns, of ten advertisements each",
    },
    Parameter {
        name: "burst_share",
        kind: ParameterKind::Number,
        default: "0.1",
        summary: "share of the rows that a burst of one campaign takes",
    },
];

const DELAY_STREAM: u64 = 500;
const EVENT_STREAM: u64 = 501;
const BURST_STREAM: u64 = 502;
const USER_STREAM: u64 = 503;
const PAGE_STREAM: u64 = 504;
const AD_STREAM: u64 = 505;
const CAMPAIGN_STREAM: u64 = 506;

const ADS_PER_CAMPAIGN: u32 = 10;
const USERS: u32 = 100;
const PAGES: u32 = 100;
const AD_TYPES: [&str; 5] = ["banner", "modal", "sponsored-search", "mail", "mobile"];
const EVENT_TYPES: [&str; 3] = ["view", "click", "purchase"];
/// As in the benchmark, where it is the same in all rows.
const ADDRESS: &str = "1.2.3.4";

/// A slot has one burst, which lies within it.
const SLOT_MS: u64 = 60_000;
const BURST_MS: u64 = 20_000;

/// A campaign that is talked about, and when (after the first arrival).
struct Burst {
    campaign: u32,
    from_ms: u64,
}

/// Users, pages, advertisements, and what happens to them.
struct Model {
    arrivals: Arrivals,
    draws: CounterStream,
    bursts: CounterStream,
    burst: Chance,
    campaigns: u32,
    users: Arc<StringArray>,
    pages: Arc<StringArray>,
    ads: Arc<StringArray>,
    campaign_names: Arc<StringArray>,
}

impl Model {
    fn new(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<Self> {
        let campaigns = arguments.count_u32("campaigns")?;
        let campaigns = check_count("campaigns", campaigns, 1 << 20)?;
        let named = |count: u32, stream: u64| {
            let stream = CounterStream::new(seed, stream);
            names(count, |it| uuid(stream, it.into()))
        };
        let delays = CounterStream::new(seed, DELAY_STREAM);
        Ok(Model {
            arrivals: Arrivals::new(rows, delays, arguments)?,
            draws: CounterStream::new(seed, EVENT_STREAM),
            bursts: CounterStream::new(seed, BURST_STREAM),
            burst: Chance::new(arguments.share("burst_share")?),
            campaigns,
            users: named(USERS, USER_STREAM),
            pages: named(PAGES, PAGE_STREAM),
            ads: named(campaigns * ADS_PER_CAMPAIGN, AD_STREAM),
            campaign_names: named(campaigns, CAMPAIGN_STREAM),
        })
    }

    fn burst_of(&self, slot: u64) -> Burst {
        let draw = self.bursts.draw(slot);
        // Shorter than a slot.
        let wait_ms = below(low(draw), (SLOT_MS - BURST_MS) as u32);
        Burst {
            campaign: below(high(draw), self.campaigns),
            from_ms: slot * SLOT_MS + u64::from(wait_ms),
        }
    }

    /// The advertisement that row number `row` is about.
    fn ad(&self, row: u64) -> u32 {
        let draw = self.draws.row_draw(row, 1);
        let now_ms = self.arrivals.since_start_ms(row);
        let burst = self.burst_of(now_ms / SLOT_MS);
        let is_burst = (burst.from_ms..burst.from_ms + BURST_MS).contains(&now_ms);
        if is_burst && self.burst.decide(high(draw)) {
            return burst.campaign * ADS_PER_CAMPAIGN + below(low(draw), ADS_PER_CAMPAIGN);
        }
        below(low(draw), self.campaigns * ADS_PER_CAMPAIGN)
    }
}

impl GridModel for Model {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch> {
        let column = |value: &dyn Fn(u64) -> u32| -> Vec<i32> {
            range.clone().map(|row| value(row).cast_signed()).collect()
        };
        let draw = |row, lane| self.draws.row_draw(row, lane);
        let users = column(&|row| below(high(draw(row, 0)), USERS));
        let pages = column(&|row| below(low(draw(row, 0)), PAGES));
        let ads = column(&|row| self.ad(row));
        let ad_types = column(&|row| below(high(draw(row, 2)), AD_TYPES.len() as u32));
        let event_types = column(&|row| below(low(draw(row, 2)), EVENT_TYPES.len() as u32));
        let times: Vec<i64> = range
            .clone()
            .map(|row| self.arrivals.happened_ms(row))
            .collect();
        let listed = |texts: &[&str]| Arc::new(texts.iter().copied().map(Some).collect());
        let addresses = Int32Array::from(vec![0; times.len()]);
        let arrays: Vec<ArrayRef> = vec![
            coded(users, &self.users)?,
            coded(pages, &self.pages)?,
            coded(ads, &self.ads)?,
            coded(ad_types, &listed(&AD_TYPES))?,
            coded(event_types, &listed(&EVENT_TYPES))?,
            Arc::new(TimestampMillisecondArray::from(times)),
            coded(addresses, &listed(&[ADDRESS]))?,
        ];
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }

    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()> {
        let end_ms = self.arrivals.since_start_ms(rows);
        for slot in 0..end_ms.div_ceil(SLOT_MS) {
            let burst = self.burst_of(slot);
            if burst.from_ms >= end_ms {
                break;
            }
            let at_ms = |ms| Part::Whole(self.arrivals.after_start(ms));
            let campaign = self.campaign_names.value(burst.campaign as usize);
            let record = object(&[
                ("kind", Part::Text("burst")),
                ("campaign_id", Part::Text(campaign)),
                ("from_ms", at_ms(burst.from_ms)),
                ("to_ms", at_ms(burst.from_ms + BURST_MS)),
            ]);
            writeln!(out, "{record}")?;
        }
        Ok(())
    }

    fn tables(&self) -> Result<Vec<(&'static str, RecordBatch)>> {
        let text = |name| Field::new(name, DataType::Utf8, false);
        let schema = Schema::new(vec![text("ad_id"), text("campaign_id")]);
        let campaign = |ad: u32| self.campaign_names.value((ad / ADS_PER_CAMPAIGN) as usize);
        let ads = self.campaigns * ADS_PER_CAMPAIGN;
        let campaigns: StringArray = (0..ads).map(|ad| Some(campaign(ad))).collect();
        let columns: Vec<ArrayRef> = vec![Arc::clone(&self.ads) as ArrayRef, Arc::new(campaigns)];
        let rows = RecordBatch::try_new(Arc::new(schema), columns)?;
        Ok(vec![("campaigns", rows)])
    }
}

/// Schema of the stream.
///
/// # Source Chintapalli et al.: "Benchmarking streaming computation engines: Storm, Flink and Spark
/// streaming" (2016).
pub fn schema() -> SchemaRef {
    let fields = [
        ("user_id", coded_type()),
        ("page_id", coded_type()),
        ("ad_id", coded_type()),
        ("ad_type", coded_type()),
        ("event_type", coded_type()),
        (
            "timestamp",
            DataType::Timestamp(TimeUnit::Millisecond, None),
        ),
        ("ip_address", coded_type()),
    ];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
    Arc::new(Schema::new(fields.to_vec()))
}
