//! The windows that `WINDOW` names, where another one begins with such a name.
//!
//! ```text
//! sum(x) OVER (w ROWS 1 PRECEDING) … WINDOW w AS (PARTITION BY s ORDER BY id)
//!   ─▶ sum(x) OVER (PARTITION BY s ORDER BY id ROWS 1 PRECEDING)
//! ```
//! The planner knows `OVER w` and passes over a name within parentheses. As in PostgreSQL, what
//! begins with a name adds an order, where the named window has none, and a frame.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut,
    VisitorMut, WindowSpec, WindowType,
};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use super::{folded, place};

/// Writes out each window of `query` that begins with the name of another.
///
/// # Errors
/// `InvalidArgument` with the place for names of no window, and for what such a window cannot add.
pub(crate) fn write_out(query: &mut Query) -> Result<()> {
    match query.visit(&mut Queries) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Error;

    // Inner queries come first: what is left of names within `query` is of its own windows.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut known = Named::default();
        if let SetExpr::Select(select) = query.body.as_mut() {
            known = defined(select)?;
        }
        query.order_by.visit(&mut known)?;
        write_out_selects(&mut query.body)
    }
}

fn write_out_selects(body: &mut SetExpr) -> ControlFlow<Error> {
    match body {
        SetExpr::Select(select) => {
            let mut known = defined(select)?;
            select.visit(&mut known)
        }
        SetExpr::SetOperation { left, right, .. } => {
            write_out_selects(left)?;
            write_out_selects(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

/// Writes out the windows that `select` names, each by those before it.
fn defined(select: &mut Select) -> ControlFlow<Error, Named> {
    let mut known = Named::default();
    for NamedWindowDefinition(name, window) in &mut select.named_window {
        let spec = match window {
            NamedWindowExpr::NamedWindow(of) => known.of(of)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => {
                known.write_out(spec)?;
                spec.clone()
            }
        };
        known.windows.push((folded(name), spec));
    }
    ControlFlow::Continue(known)
}

/// The windows that a query names.
#[derive(Default)]
struct Named {
    windows: Vec<(String, WindowSpec)>,
}

impl Named {
    fn of(&self, name: &Ident) -> ControlFlow<Error, &WindowSpec> {
        let wanted = folded(name);
        let mut windows = self.windows.iter();
        if let Some((_, spec)) = windows.find(|(known, _)| *known == wanted) {
            return ControlFlow::Continue(spec);
        }
        let known: Vec<&str> = self.windows.iter().map(|(name, _)| name.as_str()).collect();
        let error = Error::invalid(format!(
            "unknown window `{wanted}`{}",
            place(name.span.start)
        ));
        ControlFlow::Break(match nearest(&wanted, &known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("name it behind the query: WINDOW w AS (PARTITION BY k)"),
        })
    }

    /// Puts what the window at the start of `spec` says into it.
    fn write_out(&self, spec: &mut WindowSpec) -> ControlFlow<Error> {
        let Some(name) = spec.window_name.take() else {
            return ControlFlow::Continue(());
        };
        let base = self.of(&name)?;
        let wrong = |what: &str, hint: &str| {
            let message = format!(
                "{what} window `{}`{}",
                folded(&name),
                place(name.span.start)
            );
            ControlFlow::Break(Error::invalid(message).hint(hint))
        };
        if !spec.partition_by.is_empty() {
            return wrong("PARTITION BY beside that of", "leave it out");
        }
        if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            return wrong("ORDER BY beside that of", "leave one of them out");
        }
        if base.window_frame.is_some() {
            let hint = "write OVER w without parentheses, or leave the frame out of WINDOW";
            return wrong("more than the frame of", hint);
        }
        spec.partition_by.clone_from(&base.partition_by);
        if spec.order_by.is_empty() {
            spec.order_by.clone_from(&base.order_by);
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Named {
    type Break = Error;

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        match value {
            Expr::Function(function) => match &mut function.over {
                Some(WindowType::WindowSpec(spec)) => self.write_out(spec),
                _ => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Asked, Command, parse};

    fn written(text: &str) -> Result<String> {
        let Some(Command::Query(Asked { mut query, .. })) = parse(text)?.pop() else {
            return Err(Error::internal("no query"));
        };
        write_out(&mut query)?;
        Ok(query.to_string())
    }

    #[test]
    fn windows_begin_with_what_their_name_says() {
        let text = "SELECT sum(x) OVER (w ROWS 1 PRECEDING) FROM \
                    (SELECT max(y) OVER (W ORDER BY z) FROM u WINDOW w AS (PARTITION BY i)) \
                    WINDOW w AS (PARTITION BY s ORDER BY id)";
        let text = written(text).unwrap();
        for part in [
            "sum(x) OVER (PARTITION BY s ORDER BY id ROWS 1 PRECEDING)",
            "max(y) OVER (PARTITION BY i ORDER BY z)",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let chained = "SELECT rank() OVER (v) FROM t \
                       WINDOW w AS (PARTITION BY s), v AS (w ORDER BY a) \
                       ORDER BY rank() OVER (w ORDER BY b)";
        let text = written(chained).unwrap();
        for part in [
            "rank() OVER (PARTITION BY s ORDER BY a)",
            "rank() OVER (PARTITION BY s ORDER BY b)",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_a_window_cannot_add_is_refused() {
        for (over, message) in [
            (
                "nope ORDER BY a",
                "unknown window `nope` at line 1, column 21",
            ),
            ("w PARTITION BY a", "PARTITION BY beside that of window `w`"),
            ("o ORDER BY a", "ORDER BY beside that of window `o`"),
            ("f", "more than the frame of window `f`"),
        ] {
            let text = format!(
                "SELECT sum(x) OVER ({over}) FROM t WINDOW w AS (PARTITION BY s), \
                 o AS (ORDER BY s), f AS (ORDER BY s ROWS 1 PRECEDING)"
            );
            let error = written(&text).unwrap_err();
            assert!(error.message().starts_with(message), "{error}");
        }
    }
}
