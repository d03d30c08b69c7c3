use super::*;

fn written(text: &str) -> String {
    match text.parse::<BusUrl>() {
        Ok(url) => url.to_string(),
        Err(error) => error.to_string(),
    }
}

fn at_line_7(text: &str) -> BusAddress {
    let origin = Origin::File {
        file: "repository.toml".to_owned(),
        line: Some(7),
    };
    text.parse::<WrittenUrl>().unwrap().at(origin)
}

#[test]
fn addresses_that_are_understood() {
    for (text, expected) in [
        ("embedded:", "embedded:"),
        ("stomp://127.0.0.1:61613", "stomp://127.0.0.1:61613"),
        ("stomp://bus.example.org", "stomp://bus.example.org:61613"),
        ("stomp://h:1/", "stomp://h:1"),
        ("stomp+ssl://h", "stomp+ssl://h:61612"),
        ("STOMP://Bus.example.org:7", "stomp://Bus.example.org:7"),
        ("Embedded:", "embedded:"),
        (
            "FailOver:(Stomp://a:1,STOMP+SSL://b:2)",
            "failover:(stomp://a:1,stomp+ssl://b:2)",
        ),
        ("stomp://[::1]:7", "stomp://[::1]:7"),
        (" stomp://h:1 ", "stomp://h:1"),
        (
            "failover:(stomp://a:1,stomp://b:2)",
            "failover:(stomp://a:1,stomp://b:2)",
        ),
        (
            "failover:( stomp://a:1 , stomp://b:2 ) ",
            "failover:(stomp://a:1,stomp://b:2)",
        ),
        (
            "failover://(stomp://a:1)?randomize=false&maxReconnectDelay=5000",
            "failover:(stomp://a:1)?randomize=false&maxReconnectDelay=5000",
        ),
        (
            "failover:(stomp://a:1)?randomize=false&amp;maxReconnectDelay=5000",
            "failover:(stomp://a:1)?randomize=false&maxReconnectDelay=5000",
        ),
        ("failover://stomp://a:1", "failover:(stomp://a:1)"),
        (
            "failover:stomp://a:1?maxReconnectDelay=7",
            "failover:(stomp://a:1)?maxReconnectDelay=7",
        ),
        (
            "failover:stomp://a:1?x=1,stomp://b:2?maxReconnectDelay=7",
            "failover:(stomp://a:1,stomp://b:2)?maxReconnectDelay=7",
        ),
        (
            "failover:(failover:(stomp://a:1,stomp://b:2)?randomize=false,stomp+ssl://c:3)",
            "failover:(stomp://a:1,stomp://b:2,stomp+ssl://c:3)?randomize=false",
        ),
    ] {
        assert_eq!(written(text), expected, "{text}");
    }
    assert!(
        "failover:(stomp://a:1,stomp+ssl://b:2)"
            .parse::<BusUrl>()
            .unwrap()
            .uses_tls()
    );
}

#[test]
fn pauses() {
    let url: BusUrl =
        "failover:(failover:(stomp://a:1)?maxReconnectDelay=9)?initialReconnectDelay=5"
            .parse()
            .unwrap();
    assert_eq!(url.shortest_pause(), Some(Duration::from_millis(5)));
    assert_eq!(url.longest_pause(), Some(Duration::from_millis(9)));
    assert_eq!("stomp://a".parse::<BusUrl>().unwrap().longest_pause(), None);
}

/// Whatever options there are, the address counts. The values stay unsaid: some are secrets.
#[test]
fn options_that_are_not_understood_are_told() {
    for (text, expected, ignored) in [
        (
            "stomp://a:1?keepAlive=true",
            "stomp://a:1",
            &["keepAlive"][..],
        ),
        (
            "failover:(stomp://a:1?keepAlive=true&daemon=true,stomp://b:2?keepAlive=true)?timeout=10000",
            "failover:(stomp://a:1,stomp://b:2)",
            &["timeout", "keepAlive", "daemon"],
        ),
        (
            "failover:(failover:(stomp://a:1)?backup=true)?jms.password=sesame&maxReconnectDelay=7",
            "failover:(stomp://a:1)?maxReconnectDelay=7",
            &["jms.password", "backup"],
        ),
        (
            "failover:(stomp://a:1)?randomize=true&maxReconnectDelay=0&initialReconnectDelay=soon",
            "failover:(stomp://a:1)",
            &[
                "randomize (addresses are tried in their order)",
                "maxReconnectDelay (no time between 1 and 86400000 ms)",
                "initialReconnectDelay (no time between 1 and 86400000 ms)",
            ],
        ),
    ] {
        let address = at_line_7(text);
        assert_eq!(address.url.to_string(), expected, "{text}");
        assert!(address.to_connect().is_ok());
        let notice = format!(
            "repository.toml:7: options of the bus address that are not understood here are ignored: {}",
            ignored.join(", ")
        );
        assert_eq!(address.notices, [notice], "{text}");
    }
    assert!(at_line_7("failover:(stomp://a:1)").notices.is_empty());
}

/// As written, as shown, what it is for, and the STOMP address to write.
const FOREIGN: [(&str, &str, &str, &str); 12] = [
    (
        "tcp://bus.example.org:61616?keepAlive=true",
        "tcp://bus.example.org:61616",
        "OpenWire",
        "stomp://bus.example.org:61613",
    ),
    (
        "failover:(tcp://h:61616?keepAlive=true)",
        "failover:(tcp://h:61616)",
        "OpenWire",
        "failover:(stomp://h:61613)",
    ),
    (
        "failover://(tcp://h:61616?keepAlive=true)?timeout=10000",
        "failover:(tcp://h:61616)",
        "OpenWire",
        "failover:(stomp://h:61613)",
    ),
    (
        "failover://tcp://h:61616",
        "failover:(tcp://h:61616)",
        "OpenWire",
        "failover:(stomp://h:61613)",
    ),
    (
        "failover:(ssl://a:61601?keepAlive=true, tcp://b:12345?keepAlive=true)",
        "failover:(ssl://a:61601,tcp://b:12345)",
        "OpenWire over TLS and OpenWire",
        "failover:(stomp://a:61613,stomp://b:61613)",
    ),
    (
        "failover:(tcp://h:61616?keepAlive=true&daemon=true)?maxReconnectDelay=9",
        "failover:(tcp://h:61616)",
        "OpenWire",
        "failover:(stomp://h:61613)?maxReconnectDelay=9",
    ),
    (
        "failover:(failover:(tcp://a:1,tcp://b:2),nio://[::1]:3)",
        "failover:(tcp://a:1,tcp://b:2,nio://[::1]:3)",
        "OpenWire",
        "failover:(stomp://a:61613,stomp://b:61613,stomp://[::1]:61613)",
    ),
    (
        "tcp://localhost:9999",
        "tcp://localhost:9999",
        "OpenWire",
        "stomp://localhost:61613",
    ),
    (
        "ssl://bus:47777",
        "ssl://bus:47777",
        "OpenWire over TLS",
        "stomp://bus:61613",
    ),
    (
        "tcp://kim:sesame@bus:61616",
        "tcp://bus:61616",
        "OpenWire",
        "stomp://bus:61613",
    ),
    (
        "vm://localhost?broker.persistent=false",
        "vm://localhost",
        "a broker inside a Java process",
        "stomp://localhost:61613",
    ),
    (
        "vm:(broker:(tcp://localhost:6000)?persistent=false)",
        "vm:(broker:(tcp://localhost:6000)",
        "a broker inside a Java process",
        "stomp://localhost:61613",
    ),
];

/// The forms in which users of the Java system write their addresses load; connecting names the one to write.
#[test]
fn addresses_of_other_protocols_name_the_one_to_configure() {
    for (text, shown, protocol, stomp) in FOREIGN {
        let address = at_line_7(text);
        assert!(address.notices.is_empty() && !address.url.uses_tls());
        let problem = address.to_connect().unwrap_err().to_string();
        let tls = match protocol.contains("TLS") {
            true => " without TLS, which this version does not speak to a bus",
            false => "",
        };
        assert_eq!(
            problem,
            format!(
                "repository.toml:7: `{shown}` is for {protocol}, which is not spoken here; give the bus's STOMP \
                 address{tls}, as in url = \"{stomp}\", or set it under [bus] in node.toml for this process alone"
            )
        );
    }
}

#[test]
fn of_a_mixed_list_the_stomp_addresses_are_used() {
    let address = at_line_7("failover:(tcp://a:61616?x=1, stomp://a:61613, ssl://b:61617)");
    assert_eq!(address.url.to_string(), "failover:(stomp://a:61613)");
    assert!(address.to_connect().is_ok());
    assert_eq!(
        address.notices,
        [
            "repository.toml:7: `tcp://a:61616` is an address for OpenWire, which is not spoken here, and is left out",
            "repository.toml:7: `ssl://b:61617` is an address for OpenWire over TLS, which is not spoken here, and is \
             left out",
            "repository.toml:7: options of the bus address that are not understood here are ignored: x",
        ]
    );
}

#[test]
fn addresses_that_are_refused() {
    for (text, part) in [
        ("", "no bus address"),
        ("localhost:61613", "no bus address"),
        ("stomp:h", "no bus address"),
        ("http://h:1", "no bus address"),
        ("failover://h", "no bus address"),
        ("stomp://", "no usable host"),
        ("stomp://:61613", "no usable host"),
        ("stomp://h:0", "no usable host"),
        ("stomp://h:65536", "no usable host"),
        ("stomp://[::1:7", "no usable host"),
        ("tcp://:61616", "no usable host"),
        ("tcp:61616", "no usable host"),
        ("failover:(stomp://a:1", "parentheses"),
        ("failover:(stomp://a:1)x", "parentheses"),
        ("failover:(stomp://a:1)x?y=1", "parentheses"),
        ("failover:()", "no bus address"),
        ("failover:(tcp://a:1,)", "no bus address"),
        ("failover:(stomp://a:1,embedded:)", "no bus address"),
        ("stomp://kim:sesame@h:1", "holds no user name"),
        ("failover:(stomp://kim:sesame@h:1)", "holds no user name"),
        ("failover:(tcp://kim:sesame@h:1", "failover:(tcp://h:1"),
        ("stomp:kim:sesame@h", "no bus address"),
        ("failover:(stomp://a:1?passcode=sesame", "parentheses"),
    ] {
        let said = written(text);
        assert!(said.contains(part), "{text}: {said}");
        assert!(!said.contains("sesame"), "{text}: {said}");
    }
    let deep = format!("{}stomp://a:1{}", "failover:(".repeat(20), ")".repeat(20));
    assert!(written(&deep).contains("too deep"));
}

#[test]
fn what_is_advised_is_not_refused() {
    for scheme in ["ssl", "SSL", "nio+ssl", "amqps"] {
        let written: WrittenUrl = format!("{scheme}://127.0.0.1:61616").parse().unwrap();
        let place = Origin::File {
            file: "node.toml".to_owned(),
            line: Some(3),
        };
        let problem = written.at(place).to_connect().unwrap_err();
        assert_eq!(
            problem.next_step,
            "give the bus's STOMP address without TLS, which this version does not speak to a bus, as in url = \
             \"stomp://127.0.0.1:61613\""
        );
    }
}
