//! A stretch of the log, row images into columns.

use anyhow::{Result, ensure};

use super::Columns;
use super::socket::Socket;

/// How one column lies in a row image.
#[derive(Clone, Copy)]
enum Layout {
    Fixed(usize),
    /// So many length bytes, then the value.
    Counted(usize),
}

/// Reads the log from `file`:`position` to its end; the number of row events of the table (an update is one).
pub(crate) fn read_log(port: u16, file: &str, position: u32) -> Result<u64> {
    let mut socket = Socket::connect(port)?;
    socket.run("SET @master_binlog_checksum = @@global.binlog_checksum")?;
    let mut dump = vec![0x12];
    dump.extend_from_slice(&position.to_le_bytes());
    dump.extend_from_slice(&[1, 0]);
    dump.extend_from_slice(&4_000_000_001u32.to_le_bytes());
    dump.extend_from_slice(file.as_bytes());
    socket.command(&dump)?;
    let (mut layouts, mut out, mut events) = (Vec::new(), Columns::default(), 0);
    loop {
        let packet = socket.packet()?;
        if packet[0] == 0xfe && packet.len() < 9 {
            return Ok(events);
        }
        ensure!(packet[0] == 0, "the server says: {}", String::from_utf8_lossy(packet));
        let body = &packet[20..packet.len() - 4];
        match packet[5] {
            19 => {
                layouts = table_map(body);
                if out.values.len() != layouts.len() {
                    out = Columns::with(layouts.len());
                }
            }
            kind @ 30..=32 => {
                let images = rows(body, kind == 31, &layouts, &mut out);
                events += if kind == 31 { images / 2 } else { images };
            }
            _ => {}
        }
    }
}

fn table_map(body: &[u8]) -> Vec<Layout> {
    let mut at = 8;
    at += 2 + usize::from(body[at]);
    at += 2 + usize::from(body[at]);
    let count = usize::from(body[at]);
    let types = &body[at + 1..at + 1 + count];
    let mut meta = at + 2 + count;
    types.iter().map(|&kind| layout(kind, body, &mut meta)).collect()
}

fn layout(kind: u8, body: &[u8], meta: &mut usize) -> Layout {
    let word = u16::from_le_bytes([body[*meta], body[*meta + 1]]);
    let (first, second) = (body[*meta], body[*meta + 1]);
    let fraction = |digits: u8| usize::from(digits.div_ceil(2));
    let (layout, used) = match kind {
        1 => (Layout::Fixed(1), 0),
        2 => (Layout::Fixed(2), 0),
        3 => (Layout::Fixed(4), 0),
        8 => (Layout::Fixed(8), 0),
        10 => (Layout::Fixed(3), 0),
        4 => (Layout::Fixed(4), 1),
        5 => (Layout::Fixed(8), 1),
        17 => (Layout::Fixed(4 + fraction(first)), 1),
        18 => (Layout::Fixed(5 + fraction(first)), 1),
        19 => (Layout::Fixed(3 + fraction(first)), 1),
        15 => (Layout::Counted(if word > 255 { 2 } else { 1 }), 2),
        245 | 252 => (Layout::Counted(usize::from(first)), 1),
        246 => (Layout::Fixed(decimal_width(first, second)), 2),
        254 if matches!(first, 247 | 248) => (Layout::Fixed(usize::from(second)), 2),
        254 => {
            let bytes = usize::from(second) | usize::from((first & 0x30) ^ 0x30) << 4;
            (Layout::Counted(if bytes > 255 { 2 } else { 1 }), 2)
        }
        other => unreachable!("type {other} is in no benchmark table"),
    };
    *meta += used;
    layout
}

fn decimal_width(precision: u8, scale: u8) -> usize {
    const PARTIAL: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let part = |digits: u8| usize::from(digits / 9) * 4 + PARTIAL[usize::from(digits % 9)];
    part(precision - scale) + part(scale)
}

/// Walks the images of one event; how many there were.
fn rows(body: &[u8], update: bool, layouts: &[Layout], out: &mut Columns) -> u64 {
    let extra = usize::from(body[8]) | usize::from(body[9]) << 8;
    let present = layouts.len().div_ceil(8);
    let mut at = 8 + extra + 1 + present * if update { 2 } else { 1 };
    let mut images = 0;
    while at < body.len() {
        let nulls = &body[at..at + present];
        at += present;
        for (column, layout) in layouts.iter().enumerate() {
            if nulls[column / 8] >> (column % 8) & 1 == 1 {
                out.push(column, &[0; 8]);
                continue;
            }
            match *layout {
                Layout::Fixed(width) => {
                    out.push(column, &body[at..at + width]);
                    at += width;
                }
                Layout::Counted(head) => {
                    let length = (0..head).map(|i| usize::from(body[at + i]) << (8 * i)).sum::<usize>();
                    at += head;
                    out.push_text(column, &body[at..at + length]);
                    at += length;
                }
            }
        }
        out.end_row();
        images += 1;
    }
    images
}
