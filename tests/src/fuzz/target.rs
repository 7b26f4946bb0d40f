//! What is fed: each target takes bytes as a server would send them, and says whether they were read to their end.

use std::sync::Arc;

use cdchost_mysql_row::{
    ColumnKind, Columns, ImagePlan, PassPlan, ResultPlan, TableLayout, pass_image, pass_partial_image, read_image,
    read_partial_image,
};
use cdchost_mysql_wire::binlog::{
    Decision, Event, EventBody, EventHeader, RowsEvent, RowsOp, TableMap, TableMapEvent, Unpacker, decision,
};

use super::corpus::CorpusTable;
use super::log::logs;

/// Something that reads bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Its inputs out of a table of the corpus.
    pub(super) inputs: fn(&CorpusTable) -> Vec<Input>,
}

/// Whether bytes were read to their end as valid.
type Read = dyn Fn(&[u8]) -> bool;

/// Bytes that a server wrote, and what reads them.
pub(super) struct Input {
    pub(super) bytes: Vec<u8>,
    pub(super) read: Box<Read>,
}

/// All of them.
pub const TARGETS: [Target; 6] = [
    Target { name: "table-map", inputs: table_maps },
    Target { name: "row-images", inputs: row_images },
    Target { name: "documents", inputs: documents },
    Target { name: "result-rows", inputs: result_rows },
    Target { name: "packed-events", inputs: packed_events },
    Target { name: "logs", inputs: logs },
];

const TABLE_MAP: u8 = 19;
const PAYLOAD: u8 = 40;
/// What stands before the events of a packed transaction that are not compressed.
const NOT_COMPRESSED: &[u8] = &[2, 3, 0xFC, 0xFF, 0, 0];

fn table_maps(table: &CorpusTable) -> Vec<Input> {
    let layout = Arc::clone(&table.layout);
    let read = move |bytes: &[u8]| {
        let Some(map) = table_map(bytes) else { return false };
        let passes = PassPlan::compile(&map, &layout).is_some();
        ImagePlan::compile(&map, &layout).is_ok() && passes
    };
    vec![Input { bytes: table.map.clone(), read: Box::new(read) }]
}

fn row_images(table: &CorpusTable) -> Vec<Input> {
    let map = table_map(&table.map).expect("the corpus has whole table maps");
    let plan = Arc::new(ImagePlan::compile(&map, &table.layout).expect("the corpus's maps fit their tables"));
    let pass = Arc::new(PassPlan::compile(&map, &table.layout).expect("the corpus's types are known"));
    let input = |(event_type, bytes): &(u8, Vec<u8>)| {
        let (event_type, layout) = (*event_type, Arc::clone(&table.layout));
        let (plan, pass) = (Arc::clone(&plan), Arc::clone(&pass));
        let read = move |bytes: &[u8]| {
            let Some(EventBody::Rows(rows)) = event(event_type, bytes) else { return false };
            let passed = pass_rows(&rows, &pass);
            let read = read_rows(&rows, &plan, &layout);
            assert!(passed || !read, "what is read can be passed over");
            read
        };
        Input { bytes: bytes.clone(), read: Box::new(read) }
    };
    table.events.iter().map(input).collect()
}

/// Row images of tables that have JSON, most of whose bytes are documents.
fn documents(table: &CorpusTable) -> Vec<Input> {
    if table.layout.kinds.contains(&ColumnKind::Json) { row_images(table) } else { Vec::new() }
}

fn result_rows(table: &CorpusTable) -> Vec<Input> {
    let input = |bytes: &Vec<u8>| {
        let (columns, layout) = (table.columns.clone(), Arc::clone(&table.layout));
        let read = move |bytes: &[u8]| {
            let mut plan = ResultPlan::compile(&columns, &layout).expect("the corpus's columns fit their tables");
            let mut gathered = layout.columns();
            let read = plan.read_row(bytes, gathered.as_mut_slice()).is_ok() && plan.last_key().is_some();
            read && whole(&mut gathered)
        };
        Input { bytes: bytes.clone(), read: Box::new(read) }
    };
    table.rows.iter().map(input).collect()
}

/// Packed events as they came, and what is packed in them as if it were not compressed: few changes of compressed bytes
/// leave anything to be read.
fn packed_events(table: &CorpusTable) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (event_type, bytes) in &table.packed {
        let event_type = *event_type;
        let plain = unpack(event_type, bytes).expect("the corpus's packed events are whole");
        inputs.push(Input { bytes: bytes.clone(), read: Box::new(move |bytes| unpack(event_type, bytes).is_some()) });
        let read = move |bytes: &[u8]| unpack(PAYLOAD, &[NOT_COMPRESSED, bytes].concat()).is_some();
        inputs.push(Input { bytes: plain, read: Box::new(read) });
    }
    inputs
}

/// Unpacks all events and reads them; none if one of them is wrong. Gives them as they stand in a log.
fn unpack(event_type: u8, body: &[u8]) -> Option<Vec<u8>> {
    let Decision::Unpack(packing) = decision(event_type) else { return None };
    let mut unpacker = Unpacker::default();
    unpacker.begin(packing, header(event_type), body).ok()?;
    let mut plain = Vec::new();
    loop {
        let event = unpacker.event()?;
        match event.read().ok()? {
            EventBody::TableMap(map) => drop(map.columns().ok()?),
            EventBody::Query(query) => drop(query.status().ok()?),
            _ => {}
        }
        let bytes = u32::try_from(19 + event.body.len()).ok()?;
        plain.extend_from_slice(&[0, 0, 0, 0, event.header.event_type, 0, 0, 0, 0]);
        plain.extend_from_slice(&bytes.to_le_bytes());
        plain.extend_from_slice(&[0; 6]);
        plain.extend_from_slice(event.body);
        if !unpacker.next(body).ok()? {
            return Some(plain);
        }
    }
}

fn header(event_type: u8) -> EventHeader {
    EventHeader { timestamp: 0, event_type, server_id: 0, event_bytes: 0, end_position: 0, flags: 0 }
}

/// An event's body, read as the stream reads it behind the checksum.
fn event(event_type: u8, body: &[u8]) -> Option<EventBody<'_>> {
    let Decision::Read(kind) = decision(event_type) else { return None };
    Event { header: header(event_type), kind, body }.read().ok()
}

fn table_map(body: &[u8]) -> Option<TableMap> {
    table_map_event(body)?.columns().ok()
}

pub(super) fn table_map_event(body: &[u8]) -> Option<TableMapEvent<'_>> {
    match event(TABLE_MAP, body)? {
        EventBody::TableMap(event) => Some(event),
        _ => None,
    }
}

/// Reads all rows of an event.
fn read_rows(event: &RowsEvent<'_>, plan: &ImagePlan, layout: &TableLayout) -> bool {
    if event.column_count != plan.logged_columns() || !event.holds_first(plan.column_count()) {
        return false;
    }
    let mut columns = layout.columns();
    let mut rest = event.rows;
    while !rest.is_empty() {
        let before = rest;
        let gathered = columns.as_mut_slice();
        let first = read_image(plan, &mut rest, gathered);
        let read = first.and_then(|()| match event.op {
            RowsOp::Insert | RowsOp::Delete => Ok(()),
            RowsOp::Update => read_image(plan, &mut rest, gathered),
            RowsOp::PartialUpdate => read_partial_image(plan, before, &mut rest, gathered),
        });
        if read.is_err() {
            return false;
        }
    }
    whole(&mut columns)
}

fn pass_rows(event: &RowsEvent<'_>, plan: &PassPlan) -> bool {
    let count = plan.column_count();
    if event.column_count != count || !event.holds_first(count) {
        return false;
    }
    let mut rest = event.rows;
    while !rest.is_empty() {
        let first = pass_image(plan, count, &mut rest);
        let passed = first.and_then(|()| match event.op {
            RowsOp::Insert | RowsOp::Delete => Ok(()),
            RowsOp::Update => pass_image(plan, count, &mut rest),
            RowsOp::PartialUpdate => pass_partial_image(plan, count, &mut rest),
        });
        if passed.is_err() {
            return false;
        }
    }
    true
}

fn whole(columns: &mut Columns) -> bool {
    columns.finish().is_ok()
}
