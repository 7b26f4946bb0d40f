//! MariaDB's UUID, INET4 and INET6: the log's bytes to the server's text.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{ShownBytes, ValueError};

const BAD: ValueError = ValueError::Malformed("UUID or address");
impl ShownBytes {
    /// Appends the text of a value.
    pub(crate) fn print(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        let written = match self {
            Self::Inet4 => {
                let address = Ipv4Addr::from(<[u8; 4]>::try_from(bytes).map_err(|_| BAD)?);
                write!(out, "{address}")
            }
            Self::Inet6 => {
                print_inet6(<[u8; 16]>::try_from(bytes).map_err(|_| BAD)?, out);
                return Ok(());
            }
            Self::Uuid => {
                let [a, b, c, d, rest @ ..] = <[u8; 16]>::try_from(bytes).map_err(|_| BAD)?;
                let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let [first, second, third] = [0, 2, 4].map(|at| hexadecimal(&rest[at..at + 2]));
                write!(out, "{}-{first}-{second}-{third}-{}", hexadecimal(&[a, b, c, d]), hexadecimal(&rest[6..]))
            }
        };
        written.expect("writing to memory does not fail");
        Ok(())
    }
}

/// Hexadecimal groups, the longest run of zeros left out, the last 32 bits as IPv4 where all above is zero or marks
/// such an address.
fn print_inet6(bytes: [u8; 16], out: &mut Vec<u8>) {
    let groups = Ipv6Addr::from(bytes).segments();
    let run = longest_run(&groups);
    let is_v4 = run == (0..6) || (run == (0..5) && groups[5] == 0xffff);
    let mut text = String::new();
    let shown = if is_v4 { 6 } else { groups.len() };
    let mut at = 0;
    while at < shown {
        if at == run.start && !run.is_empty() {
            text.push_str("::");
            at = run.end;
            continue;
        }
        if !text.is_empty() && !text.ends_with(':') {
            text.push(':');
        }
        text.push_str(&format!("{:x}", groups[at]));
        at += 1;
    }
    if is_v4 {
        let [.., a, b, c, d] = bytes;
        let separator = if text.ends_with(':') { "" } else { ":" };
        text.push_str(&format!("{separator}{}", Ipv4Addr::new(a, b, c, d)));
    }
    out.extend_from_slice(text.as_bytes());
}

/// The first of the longest runs of zeros.
fn longest_run(groups: &[u16; 8]) -> std::ops::Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for (at, &group) in groups.iter().enumerate() {
        if group != 0 {
            start = at + 1;
        } else if at + 1 - start > longest.len() {
            longest = start..at + 1;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ShownBytes, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        kind.print(bytes, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Each is how MariaDB 10.11 shows it.
    #[test]
    fn addresses_are_shown_as_the_server_shows_them() {
        for text in [
            "2001:db8::1",
            "::ffff:1.2.3.4",
            "::",
            "::1.2.3.4",
            "1:0:0:2::3",
            "2001:db8::1:1:1:1:1",
            "::2:0:0:0:5",
            "::1",
            "::ff",
            "::ffff:0.0.0.0",
            "::0.1.0.2",
            "1:2:3:4:5:6:7:8",
            "1::",
        ] {
            let address: Ipv6Addr = text.parse().unwrap();
            assert_eq!(shown(ShownBytes::Inet6, &address.octets()), text);
        }
        assert_eq!(shown(ShownBytes::Inet4, &[10, 0, 0, 32]), "10.0.0.32");
        assert!(ShownBytes::Inet4.print(&[1, 2, 3], &mut Vec::new()).is_err());
    }

    #[test]
    fn uuids_are_shown_in_five_parts() {
        let bytes: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
        assert_eq!(shown(ShownBytes::Uuid, &bytes), "00112233-4455-6677-8899-aabbccddeeff");
        assert!(ShownBytes::Uuid.print(&bytes[1..], &mut Vec::new()).is_err());
    }
}
