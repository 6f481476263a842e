//! What a run counted: rows, bytes, and which work was done on encoded values.

use tersecades_columnar::batch::Batch;
use tersecades_columnar::choose::Candidate;
use tersecades_columnar::codec::Tally;

/// Bytes and codec of one column.
#[derive(Debug, Clone, Default)]
pub struct ColumnMetrics {
    /// Name.
    pub name: String,
    /// Bytes as Arrow lays the column out, text as codes where that is smaller.
    pub raw_bytes: u64,
    /// Bytes as encoded, its dictionary included.
    pub encoded_bytes: u64,
    /// Codec of the last batch, with the codec of its codes.
    pub codec: String,
    /// What the chooser weighed for the last batch.
    pub candidates: Vec<Candidate>,
}

/// Late rows of one window, in ticks of the event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWindow {
    /// Its first time.
    pub start: i64,
    /// The first time after it.
    pub end: i64,
    /// Rows that came after it had closed, of which it is the last window.
    pub rows: u64,
}

/// Counters of a run.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Rows that arrived, or were passed over.
    pub rows: u64,
    /// Rows among them that the source passed over because the query wants nothing of them.
    pub left_out_rows: u64,
    /// Batches that arrived.
    pub batches: u64,
    /// Rows without an event time, which no window takes.
    pub untimed_rows: u64,
    /// Rows that came after all their windows had closed.
    pub late_rows: u64,
    /// The same, for the last window of each row; at most
    /// [`LATE_WINDOWS_MAX`](crate::operator::window_aggregate::late::LATE_WINDOWS_MAX) windows of
    /// the first group-by, the newest, in order.
    pub late_by_window: Vec<LateWindow>,
    /// Late rows of older windows than those.
    pub late_rows_older: u64,
    /// Rows too far ahead of the clock to move the watermark.
    pub future_rows: u64,
    /// Retained rows that were dropped to stay below the memory limit.
    pub shortened_rows: u64,
    /// Encoded bytes of retained batches that lie in files to stay below the memory limit.
    pub spilled_bytes: u64,
    /// Rows between windows that leave gaps.
    pub skipped_rows: u64,
    /// Rows the source could not read and left out.
    pub rejected_rows: u64,
    /// Windows that came out.
    pub windows: u64,
    /// Result rows that came out.
    pub result_rows: u64,
    /// Nanoseconds spent encoding.
    pub encode_ns: u64,
    /// How values were worked on.
    pub tally: Tally,
    /// Per column of the stream that was used or kept.
    pub columns: Vec<ColumnMetrics>,
}

impl Metrics {
    /// Counts the bytes of an encoded batch.
    pub fn count_batch(&mut self, batch: &Batch) {
        self.columns
            .resize_with(batch.columns().len(), ColumnMetrics::default);
        for (column, bytes) in self.columns.iter_mut().zip(batch.column_bytes()) {
            column.raw_bytes += bytes.raw;
            column.encoded_bytes += bytes.encoded;
        }
    }

    /// Takes names, codecs and dictionary bytes from the newest batch; called once, at the end.
    pub fn describe_columns(&mut self, batch: &Batch) {
        let fields = batch.schema().fields();
        for ((column, chunk), field) in self.columns.iter_mut().zip(batch.columns()).zip(fields) {
            column.name.clone_from(field.name());
            column.candidates = chunk.candidates().to_vec();
            column.codec = chunk.codec_label();
            let bytes = chunk
                .dictionary()
                .map_or(0, |dictionary| dictionary.byte_size() as u64);
            column.raw_bytes += bytes;
            column.encoded_bytes += bytes;
        }
    }
}
