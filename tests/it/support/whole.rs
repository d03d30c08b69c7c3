//! A whole repository in one process: bus, exchange, pillars and alarm service.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::PathBuf,
};

use pillarbox_exchange::offer::OfferSpace;

use super::{
    PATIENCE,
    process::{self, Running},
    site::{Site, exchanged, files_below},
};

/// More resident memory than a small node needs, whatever it is sent; unoptimized, as tests run it.
const MOST_MEMORY: u64 = 200 << 20;

/// What an empty directory has.
pub(crate) const NO_FILES: [PathBuf; 0] = [];

/// A running repository of the collection `books`.
pub(crate) struct Whole {
    pub(crate) site: Site,
    pub(crate) node: Running,
    /// Whether something happens to its disk, of which a human must know.
    pub(crate) in_trouble: bool,
}

impl Whole {
    /// Starts one with these pillars.
    pub(crate) fn start(pillars: &[&str]) -> Self {
        Self::start_with(pillars, &[])
    }

    /// The same, with further exchange hosts that it may use.
    pub(crate) fn start_with(pillars: &[&str], hosts: &[String]) -> Self {
        let site = Site::new(pillars);
        site.settings("whole", &settings(&site, pillars, hosts));
        let node = site.start("whole");
        Self {
            site,
            node,
            in_trouble: false,
        }
    }

    /// kill -9 and a new start.
    pub(crate) fn restart(&mut self) {
        self.node.kill();
        self.node = self.site.start("whole");
    }

    /// What this pillar archives.
    pub(crate) fn archive(&self, pillar: &str) -> PathBuf {
        self.site.part("whole").join("archive").join(pillar)
    }

    /// The files that this pillar has, and those that it was receiving.
    pub(crate) fn archived(&self, pillar: &str) -> Vec<PathBuf> {
        files_below(&self.archive(pillar))
    }

    /// What the exchange has.
    pub(crate) fn exchanged(&self) -> Vec<PathBuf> {
        exchanged(&self.site.part("whole"))
    }

    /// The rows of `alarms list`.
    pub(crate) fn alarms(&self) -> String {
        let settings = self.site.part("whole");
        let list = process::run([
            "alarms".as_ref(),
            "list".as_ref(),
            "-s".as_ref(),
            settings.as_os_str(),
        ]);
        process::succeed(&list)
    }

    /// An address on the exchange that nobody has used.
    pub(crate) fn address(&self, name: &str) -> String {
        address(self.site.exchange_port, name)
    }

    /// Lays bytes on the exchange, by hand, and gives their address.
    pub(crate) fn offer(&self, name: &str, content: &[u8]) -> String {
        offer(self.site.exchange_port, name, content)
    }

    /// Asserts that the node is alive, small, and does its work.
    #[track_caller]
    pub(crate) fn assert_well(&self) {
        self.assert_well_within(MOST_MEMORY);
    }

    /// The same, with so many bytes of memory.
    #[track_caller]
    pub(crate) fn assert_well_within(&self, limit: u64) {
        let memory = process::peak_memory(self.node.id());
        assert!(memory < limit, "{} MiB of memory", memory >> 20);
        let content = b"all is well\n".repeat(1000);
        let file = self.site.file("well.txt", &content);
        let copy = self.site.path().join("well.copy");
        process::succeed(
            &self
                .site
                .run("put-file", ["-f".into(), file.into_os_string()]),
        );
        let args = [
            "-i".into(),
            "well.txt".into(),
            "-l".into(),
            copy.clone().into_os_string(),
        ];
        process::succeed(&self.site.run("get-file", args));
        assert_eq!(fs::read(&copy).expect("was fetched"), content);
    }
}

/// At the end of a test that went well, the node stops in order, and no peer's fault has made it fall over or call
/// for a human.
impl Drop for Whole {
    fn drop(&mut self) {
        if std::thread::panicking() || !self.node.lives() {
            return;
        }
        self.node.terminate();
        self.node.wait_for_success();
        for line in self.node.errors() {
            assert!(!line.contains("panicked"), "{line}");
            assert!(self.in_trouble || !line.contains(" ERROR "), "{line}");
        }
    }
}

pub(crate) fn settings(site: &Site, pillars: &[&str], hosts: &[String]) -> String {
    let exchange = site.exchange_port;
    let mut hosts: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
    hosts.push(format!("\"127.0.0.1:{exchange}\""));
    let mut text = format!(
        r#"data = "var"
[bus_server]
listen = ["127.0.0.1:{}"]
[exchange_server]
listen = "127.0.0.1:{exchange}"
public_url = "http://127.0.0.1:{exchange}/"
[exchange]
hosts = [{}]
[alarms]
id = "alarm-service"
"#,
        site.bus_port,
        hosts.join(", ")
    );
    for pillar in pillars {
        text.push_str(&format!(
            r#"[[pillars]]
id = "{pillar}"
type = "FILE"
directories = ["archive/{pillar}"]
minimum_size_left = "1 MiB"
alarm_level = "WARNING"
"#
        ));
    }
    text
}

/// An address on an exchange that nobody has used.
fn address(port: u16, name: &str) -> String {
    OfferSpace::new(&format!("http://127.0.0.1:{port}/")).address_for(name)
}

/// Lays bytes on an exchange, by hand, and gives their address.
pub(crate) fn offer(port: u16, name: &str, content: &[u8]) -> String {
    let address = address(port, name);
    deliver(port, &address, content);
    address
}

/// Lays bytes at an address on an exchange.
pub(crate) fn deliver(port: u16, address: &str, content: &[u8]) {
    let (status, _) = http(port, "PUT", path_of(address), content);
    assert_eq!(status, 201, "PUT {address}");
}

/// Path and query of an http address.
pub(crate) fn path_of(address: &str) -> &str {
    let (start, _) = address.match_indices('/').nth(2).expect("a path");
    address.split_at(start).1
}

/// One HTTP request in order: status and body of its answer.
pub(crate) fn http(port: u16, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    raw_http(port, &request).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

/// Whatever bytes to an HTTP server: status and body of its answer, if it gives one before it closes.
pub(crate) fn raw_http(port: u16, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    exchange_bytes(port, request, false)
}

/// The same, by a client that goes away in the middle of its request.
pub(crate) fn cut_off_http(port: u16, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    exchange_bytes(port, request, true)
}

fn exchange_bytes(port: u16, request: &[u8], cut_off: bool) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the exchange listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    // The server may refuse before it has read everything; its answer says what happened.
    let _ = stream.write_all(request);
    if cut_off {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_off(end + 4)))
}
