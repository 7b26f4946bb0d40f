//! After images of updates that the log holds in part: JSON documents as changes of those of the before image.

use super::plan::{Plan, Step};
use super::reach::{PassPlan, Reach};
use super::{counted, is_null, read_value};
use crate::column::bytes::{length_coded_number, take};
use crate::column::{Column, ColumnError, ValueError};
use crate::json;

/// The option that says that JSON documents may be changes. There is no other yet.
const PARTIAL_JSON: u64 = 1;
/// Bytes of the length in front of changes, whatever the column's.
const CHANGES_WIDTH: u8 = 4;

/// Reads the after image off the front of `rest`, where `before` begins with the row's before image. At an error the
/// columns hold part of a row.
pub fn read_partial_image(
    plan: &Plan,
    before: &[u8],
    rest: &mut &[u8],
    columns: &mut [Column],
) -> Result<(), ColumnError> {
    let of_row = |error| ColumnError { column: 0, error };
    let documents = documents(plan, before).map_err(of_row)?;
    let head = PartialHead::read(plan.pass.json_columns, plan.columns.len(), rest).map_err(of_row)?;
    let (mut bytes, mut json) = (*rest, 0);
    for (place, (planned, column)) in plan.columns.iter().zip(columns).enumerate() {
        let is_json = matches!(planned.step, Step::Json { .. });
        let is_changed = is_json && head.is_changed(json);
        json += usize::from(is_json);
        let read = if is_null(head.nulls, place) {
            column.push_null(planned.nullable)
        } else if is_changed {
            let document = documents.get(json - 1).copied().flatten();
            counted(&mut bytes, CHANGES_WIDTH).and_then(|changes| {
                let document = document.ok_or(ValueError::Malformed("change of a JSON document that was NULL"))?;
                column.push_with(|out| json::print_changed(document, changes, out))
            })
        } else {
            read_value(&planned.step, &mut bytes, column)
        };
        read.map_err(|error| ColumnError { column: place, error })?;
    }
    *rest = bytes;
    Ok(())
}

/// Passes over one such after image that holds the first `count` columns.
pub fn pass_partial_image(plan: &PassPlan, count: usize, rest: &mut &[u8]) -> Result<(), ValueError> {
    let head = PartialHead::read(plan.json_columns, count, rest)?;
    let (mut bytes, mut json) = (*rest, 0);
    for (place, reach) in plan.columns.iter().take(count).enumerate() {
        let is_json = matches!(reach, Reach::Json(_));
        let is_changed = is_json && head.is_changed(json);
        json += usize::from(is_json);
        if is_null(head.nulls, place) {
            continue;
        }
        match *reach {
            Reach::Fixed(length) => take(&mut bytes, length)?,
            Reach::Json(_) if is_changed => counted(&mut bytes, CHANGES_WIDTH)?,
            Reach::Counted(width) | Reach::Json(width) => counted(&mut bytes, width)?,
        };
    }
    *rest = bytes;
    Ok(())
}

/// What stands in front of the values.
struct PartialHead<'a> {
    /// A bit for each JSON column whose document is a change.
    changed: &'a [u8],
    nulls: &'a [u8],
}

impl<'a> PartialHead<'a> {
    fn read(json_columns: usize, columns: usize, rest: &mut &'a [u8]) -> Result<Self, ValueError> {
        let options = length_coded_number(rest)?;
        if options & !PARTIAL_JSON != 0 {
            return Err(ValueError::Malformed("option of a row"));
        }
        let changed_bytes = if options & PARTIAL_JSON == 0 { 0 } else { json_columns.div_ceil(8) };
        Ok(Self { changed: take(rest, changed_bytes)?, nulls: take(rest, columns.div_ceil(8))? })
    }

    fn is_changed(&self, json: usize) -> bool {
        is_null(self.changed, json)
    }
}

/// The documents of an image, one a JSON column; none for NULL.
fn documents<'a>(plan: &Plan, image: &'a [u8]) -> Result<Vec<Option<&'a [u8]>>, ValueError> {
    let (nulls, mut bytes) = image.split_at_checked(plan.columns.len().div_ceil(8)).ok_or(ValueError::Short)?;
    let mut documents = Vec::with_capacity(plan.pass.json_columns);
    for (place, reach) in plan.pass.columns.iter().enumerate() {
        let null = is_null(nulls, place);
        match *reach {
            Reach::Json(width) => documents.push(if null { None } else { Some(counted(&mut bytes, width)?) }),
            _ if null => {}
            Reach::Fixed(length) => {
                take(&mut bytes, length)?;
            }
            Reach::Counted(width) => {
                counted(&mut bytes, width)?;
            }
        }
    }
    Ok(documents)
}
