//! Addresses in requests that lead where no peer has any business.

use std::{fs, io::ErrorKind, net::TcpListener, path::Path};

use crate::support::{
    md5,
    raw_peer::{RawPeer, file_ids, put, text},
    whole::{NO_FILES, Whole, http, path_of},
};

/// Addresses that a pillar must not use, and what it says to them.
struct Traps {
    listener: TcpListener,
    /// A file that exists, below no allowed root.
    secret: tempfile::NamedTempFile,
}

impl Traps {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let secret = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(&secret, "secret").expect("can be written");
        Self { listener, secret }
    }

    /// Well-formed, and forbidden.
    fn forbidden(&self) -> Vec<String> {
        let elsewhere = self.listener.local_addr().expect("bound");
        let port = elsewhere.port();
        let secret = self.secret.path().display();
        vec![
            "file:///etc/passwd".to_owned(),
            format!("file://{secret}"),
            format!("file://localhost{secret}"),
            format!("FILE://{secret}"),
            format!("http://{elsewhere}/x/f"),
            format!("http://localhost:{port}/x/f"),
            format!("http://2130706433:{port}/x/f"),
            format!("http://[::1]:{port}/x/f"),
            format!("https://{elsewhere}/x/f"),
            "ftp://127.0.0.1/x".to_owned(),
            "gopher://127.0.0.1/x".to_owned(),
            "data:text/plain,x".to_owned(),
            "jar:file:///etc/passwd!/x".to_owned(),
        ]
    }

    /// Nothing that anybody could use.
    fn garbage(&self) -> Vec<String> {
        [
            "",
            " ",
            "garbage",
            "://",
            "http://",
            "http:///x",
            "/etc/passwd",
            "../../etc/passwd",
            "http://[::1",
            "\u{e6}\u{f8}\u{e5}",
        ]
        .map(str::to_owned)
        .into()
    }

    /// The exchange's own host, and nothing that can be fetched there.
    fn absent(whole: &Whole) -> Vec<String> {
        let base = format!("http://127.0.0.1:{}", whole.site.exchange_port);
        let port = whole.site.exchange_port;
        vec![
            whole.address("absent.txt"),
            format!("{base}/"),
            format!("{base}/../../etc/passwd"),
            format!("{base}/%2e%2e/%2e%2e/etc/passwd"),
            format!("{base}/x/f?query"),
            format!("http://user:secret@127.0.0.1:{port}/x/f"),
        ]
    }

    fn assert_untouched(&self) {
        let nobody = self.listener.accept().expect_err("nobody waits");
        assert_eq!(nobody.kind(), ErrorKind::WouldBlock, "somebody connected");
        assert_eq!(fs::read(&self.secret).expect("is there"), b"secret");
    }
}

const NOT_UNDERSTOOD: &str = "REQUEST_NOT_UNDERSTOOD_FAILURE";
const TRANSFER: &str = "FILE_TRANSFER_FAILURE";

/// Asks with every address, and asserts the codes.
fn ask_with_all(whole: &Whole, traps: &Traps, kind: &str, children: impl Fn(&str) -> String) {
    let mut peer = RawPeer::connect(whole.site.bus_port, &kind.to_lowercase());
    let either = [NOT_UNDERSTOOD, TRANSFER];
    let cases = [
        (traps.forbidden(), &either[..1]),
        (traps.garbage(), &either[1..]),
        (Traps::absent(whole), &either[..]),
    ];
    let mut number = 0;
    for (addresses, codes) in cases {
        for address in addresses {
            number += 1;
            let answer = peer.ask(kind, &format!("c-{number}"), "north", &children(&address));
            assert!(
                codes.contains(&answer.code()),
                "{kind} {address:?}: {}",
                answer.xml
            );
            // Nothing of what was found, or of this machine.
            assert!(
                !answer.xml.contains("root:") && !answer.xml.contains("os error"),
                "{}",
                answer.xml
            );
        }
    }
    traps.assert_untouched();
}

#[test]
fn files_from_anywhere() {
    let whole = Whole::start(&["north"]);
    let traps = Traps::set();
    ask_with_all(&whole, &traps, "PutFileRequest", |address| {
        put("f1.txt", address, None, &md5(b"secret"))
    });
    assert_eq!(whole.archived("north"), NO_FILES);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let listing = peer.ask("GetFileIDsRequest", "list", "north", &file_ids(None));
    assert!(!listing.xml.contains("f1.txt"), "{}", listing.xml);
    let alarms = whole.alarms();
    assert!(alarms.contains("INCONSISTENT_REQUEST"), "{alarms}");
    assert!(alarms.contains("FAILED_OPERATION"), "{alarms}");
    whole.assert_well();
}

#[test]
fn files_to_anywhere() {
    let whole = Whole::start(&["north"]);
    whole.site.file("f1.txt", b"content");
    crate::support::process::succeed(&whole.site.run("put-file", ["-f", "f1.txt"]));
    let traps = Traps::set();
    let victim = whole.site.path().join("victim");
    let ask = |address: &str| {
        format!(
            "<FileID>f1.txt</FileID><FileAddress>{}</FileAddress>",
            text(address)
        )
    };
    // Those that lie on the exchange may be written to, if they are addresses of files at all.
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for (number, address) in traps
        .forbidden()
        .into_iter()
        .chain([address_of(&victim)])
        .enumerate()
    {
        let answer = peer.ask(
            "GetFileRequest",
            &format!("c-{number}"),
            "north",
            &ask(&address),
        );
        assert_eq!(answer.code(), NOT_UNDERSTOOD, "{address}: {}", answer.xml);
    }
    for (number, address) in traps.garbage().into_iter().enumerate() {
        let answer = peer.ask(
            "GetFileRequest",
            &format!("g-{number}"),
            "north",
            &ask(&address),
        );
        assert_eq!(answer.code(), TRANSFER, "{address}: {}", answer.xml);
    }
    traps.assert_untouched();
    assert!(!victim.exists());
    assert_eq!(whole.exchanged(), NO_FILES);
    // The same request with a good address.
    let good = whole.address("f1.txt");
    let answer = peer.ask("GetFileRequest", "good", "north", &ask(&good));
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    let fetched = http(whole.site.exchange_port, "GET", path_of(&good), b"");
    assert_eq!(fetched, (200, b"content".to_vec()));
    whole.assert_well();
}

fn address_of(path: &Path) -> String {
    format!("file://{}", path.display())
}

#[test]
fn listings_to_anywhere() {
    let whole = Whole::start(&["north"]);
    let traps = Traps::set();
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for kind in ["GetFileIDsRequest", "GetChecksumsRequest"] {
        for (number, address) in traps.forbidden().into_iter().enumerate() {
            let children = format!(
                "{}<ResultAddress>{}</ResultAddress>",
                file_ids(None),
                text(&address)
            );
            let correlation = format!("{kind}-{number}");
            let answer = peer.ask(kind, &correlation, "north", &children);
            assert_eq!(
                answer.code(),
                NOT_UNDERSTOOD,
                "{kind} {address}: {}",
                answer.xml
            );
        }
    }
    traps.assert_untouched();
    whole.assert_well();
}
