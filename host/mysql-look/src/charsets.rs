//! The server's maps of character sets, asked once for each set that a captured column has.

use cdchost_mysql_row::{Charset, Charsets, CodeMap, CodeShape};
use cdchost_mysql_wire::Connection;

use crate::session::SessionError;

/// Adds the sets of these names. One that the server does not know, or whose codes are of no known shape, is left out:
/// who has a column of it says so.
pub async fn load(
    connection: &mut Connection,
    names: impl IntoIterator<Item = String>,
    charsets: &mut Charsets,
) -> Result<(), SessionError> {
    for name in names {
        if charsets.get(&name).is_some() {
            continue;
        }
        let Some(shape) = shape(connection, &name).await? else { continue };
        let mut map = CodeMap::new(shape);
        for range in CodeMap::asked(shape) {
            let result = connection.query(&codes_query(&name, range)).await?;
            for (row, values) in result.rows.iter().enumerate() {
                let code = result.text(row, 0).and_then(|code| code.parse().ok());
                let character = values.get(1).and_then(|value| value.as_deref()?.try_into().ok());
                let (code, character) = code.zip(character).ok_or(SessionError::Answer("SELECT CONVERT(…)"))?;
                map.put(code, u32::from_be_bytes(character));
            }
        }
        if let Some(map) = map.finish() {
            charsets.add(Charset::mapped(&name, map));
        }
    }
    Ok(())
}

async fn shape(connection: &mut Connection, name: &str) -> Result<Option<CodeShape>, SessionError> {
    // The name came from the server; anything that would need quotes is none.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let query = format!("SELECT maxlen FROM information_schema.character_sets WHERE character_set_name = '{name}'");
    let result = connection.query(&query).await?;
    Ok(match (name, result.text(0, 0)) {
        (_, Some("1")) => Some(CodeShape::Single),
        ("gb18030", _) => Some(CodeShape::Quadruple),
        ("ujis" | "eucjpms", _) => Some(CodeShape::Triple),
        (_, Some("2")) => Some(CodeShape::Double),
        _ => None,
    })
}

/// The characters of a range of codes, as UTF-32: each code by itself, so that one which is no character, or more than
/// one, falls out.
fn codes_query(name: &str, (first, last): (u32, u32)) -> String {
    let digits: Vec<String> = (0..16).map(|digit| format!("SELECT {digit} AS d")).collect();
    let digits = digits.join(" UNION ALL ");
    let codes = if last - first < 256 {
        format!("SELECT {first} + c.d * 16 + d.d AS code FROM ({digits}) AS c JOIN ({digits}) AS d")
    } else {
        format!(
            "SELECT {first} + a.d * 4096 + b.d * 256 + c.d * 16 + d.d AS code \
             FROM ({digits}) AS a JOIN ({digits}) AS b JOIN ({digits}) AS c JOIN ({digits}) AS d"
        )
    };
    format!(
        "SELECT code, CONVERT(CONVERT(CHAR(code) USING {name}) USING utf32) AS text FROM ({codes}) AS codes \
         WHERE code <= {last} HAVING LENGTH(text) = 4"
    )
}
