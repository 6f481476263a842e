//! `lists`: what there is to choose from, printed from the lists that the engine itself uses.

use clap::{Args, ValueEnum};
use tersecades::columnar::kernels;
use tersecades::columnar::registry::CODECS;
use tersecades::engine::aggregate::AGGREGATES;
use tersecades::engine::operator::OPERATORS;
use tersecades::engine::sink::SINKS;
use tersecades::engine::source::SOURCES;
use tersecades::engine::source::generator::{GENERATORS, GeneratorKind};
use tersecades::engine::window::WINDOWS;
use tersecades::store::partition::LAYOUTS;

use crate::console;
use crate::outcome::Outcome;
use crate::table::Table;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum List {
    /// Ways to encode a column
    Codecs,
    /// What can be computed for each group
    Aggregates,
    /// Kinds of windows
    Windows,
    /// Steps of a query
    Operators,
    /// File formats that can be read
    Sources,
    /// Formats that can be written
    Sinks,
    /// Streams that can be generated
    Generators,
    /// What can be chosen about them
    GeneratorParameters,
    /// Ways to store packed files
    Layouts,
    /// Instruction sets that this machine can run; the best is used
    Kernels,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned text
    #[default]
    Table,
    /// A Markdown table
    Markdown,
}

/// Print codecs, aggregates, windows, formats and the like
#[derive(Debug, Args)]
pub(crate) struct ListsArguments {
    /// The list
    #[arg(value_enum)]
    name: List,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints a list.
pub(crate) fn run(arguments: &ListsArguments) -> Outcome {
    let table = table_of(arguments.name);
    let text = match arguments.format {
        Format::Table => table.to_text(""),
        Format::Markdown => table.to_markdown(),
    };
    console::print(text)
}

fn table_of(list: List) -> Table {
    match list {
        List::Codecs => codecs(),
        List::Aggregates => {
            let rows = AGGREGATES
                .iter()
                .map(|it| [quoted(it.name()), it.summary().to_owned()]);
            fill(&["aggregate", "result"], rows)
        }
        List::Windows => {
            let call = |name, arguments| format!("`{name}({arguments})`");
            let rows = WINDOWS
                .iter()
                .map(|it| [call(it.name, it.arguments), it.summary.to_owned()]);
            fill(&["window", "meaning"], rows)
        }
        List::Operators => {
            let rows = OPERATORS
                .iter()
                .map(|it| [quoted(it.name), it.summary.to_owned()]);
            fill(&["operator", "meaning"], rows)
        }
        List::Sources => {
            let rows = SOURCES
                .iter()
                .map(|it| formats(it.name, it.suffixes, it.summary));
            fill(&["source", "suffixes", "what is read"], rows)
        }
        List::Sinks => {
            let rows = SINKS
                .iter()
                .map(|it| formats(it.name, it.suffixes, it.summary));
            fill(&["sink", "suffixes", "what is written"], rows)
        }
        List::Generators => {
            let rows = GENERATORS
                .iter()
                .map(|it| [quoted(it.name), it.summary.to_owned()]);
            fill(&["generator", "stream"], rows)
        }
        List::GeneratorParameters => {
            let rows = GENERATORS.iter().flat_map(parameters);
            fill(&["generator", "parameter", ">default", "meaning"], rows)
        }
        List::Layouts => {
            let rows = LAYOUTS
                .iter()
                .map(|it| [quoted(it.name()), it.summary().to_owned()]);
            fill(&["layout", "what it is good for"], rows)
        }
        List::Kernels => fill(
            &["kernels"],
            kernels::levels().iter().map(|it| [quoted(it.name)]),
        ),
    }
}

fn codecs() -> Table {
    let row = |codec: &&dyn tersecades::columnar::codec::Codec| {
        [
            codec.id().to_string(),
            quoted(codec.name()),
            codec.summary().to_owned(),
            codec.source().to_owned(),
        ]
    };
    fill(
        &[">id", "codec", "layout and use", "source"],
        CODECS.iter().map(row),
    )
}

fn fill<const N: usize>(columns: &[&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    let mut table = Table::new(columns);
    rows.into_iter().for_each(|row| table.push(row));
    table
}

fn parameters(kind: &GeneratorKind) -> impl Iterator<Item = [String; 4]> {
    kind.parameters.iter().map(|it| {
        let texts = [kind.name, it.name, it.default].map(quoted);
        let [generator, name, default] = texts;
        [generator, name, default, it.summary.to_owned()]
    })
}

fn formats(name: &str, suffixes: &[&str], summary: &str) -> [String; 3] {
    let suffixes: Vec<String> = suffixes.iter().map(|suffix| quoted(suffix)).collect();
    [quoted(name), suffixes.join(" "), summary.to_owned()]
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}
