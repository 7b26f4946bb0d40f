//! A whole table by one prepared statement.

use anyhow::{Result, ensure};

use super::Columns;
use super::socket::Socket;

/// How one column lies in a binary row.
#[derive(Clone, Copy)]
enum Layout {
    Fixed(usize),
    /// One length byte, then so many bytes.
    Temporal,
    Text,
}

/// Reads `bench.TABLE` from its first to its last row; the number of rows.
pub(crate) fn read_table(port: u16, table: &str) -> Result<u64> {
    let mut socket = Socket::connect(port)?;
    socket.run("SET character_set_results = NULL")?;
    socket.command(&[&[0x16], format!("SELECT * FROM bench.{table}").as_bytes()].concat())?;
    let answer = socket.packet()?.to_vec();
    ensure!(answer.first() == Some(&0), "cannot prepare: {}", String::from_utf8_lossy(&answer));
    let columns = usize::from(answer[5]) | usize::from(answer[6]) << 8;
    for _ in 0..=columns {
        socket.packet()?;
    }
    let mut execute = vec![0x17];
    execute.extend_from_slice(&answer[1..5]);
    execute.extend_from_slice(&[0, 1, 0, 0, 0]);
    socket.command(&execute)?;
    socket.packet()?;
    let layouts = (0..columns).map(|_| Ok(layout(socket.packet()?))).collect::<Result<Vec<_>>>()?;
    socket.packet()?;
    let mut out = Columns::with(columns);
    loop {
        let row = socket.packet()?;
        if row.len() < 9 && row[0] == 0xfe {
            return Ok(out.total);
        }
        ensure!(row[0] == 0, "the server says: {}", String::from_utf8_lossy(row));
        decode(row, &layouts, &mut out);
    }
}

/// The type byte stands seven bytes before the end of a column definition.
fn layout(definition: &[u8]) -> Layout {
    match definition[definition.len() - 6] {
        1 => Layout::Fixed(1),
        2 | 13 => Layout::Fixed(2),
        3 | 4 | 9 => Layout::Fixed(4),
        5 | 8 => Layout::Fixed(8),
        7 | 10 | 11 | 12 => Layout::Temporal,
        _ => Layout::Text,
    }
}

#[inline]
fn decode(row: &[u8], layouts: &[Layout], out: &mut Columns) {
    let nulls = &row[1..];
    let mut at = 1 + (layouts.len() + 9) / 8;
    for (column, layout) in layouts.iter().enumerate() {
        if nulls[(column + 2) / 8] >> ((column + 2) % 8) & 1 == 1 {
            out.push(column, &[0; 8]);
            continue;
        }
        match *layout {
            Layout::Fixed(width) => {
                out.push(column, &row[at..at + width]);
                at += width;
            }
            Layout::Temporal => {
                let length = usize::from(row[at]);
                let mut micros = [0; 12];
                micros[..length].copy_from_slice(&row[at + 1..at + 1 + length]);
                out.push(column, &micros);
                at += 1 + length;
            }
            Layout::Text => {
                let (length, head) = length(&row[at..]);
                out.push_text(column, &row[at + head..at + head + length]);
                at += head + length;
            }
        }
    }
    out.end_row();
}

#[inline]
fn length(bytes: &[u8]) -> (usize, usize) {
    match bytes[0] {
        0xfc => (usize::from(bytes[1]) | usize::from(bytes[2]) << 8, 3),
        0xfd => (usize::from(bytes[1]) | usize::from(bytes[2]) << 8 | usize::from(bytes[3]) << 16, 4),
        short => (usize::from(short), 1),
    }
}
