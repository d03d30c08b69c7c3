mod forgiving;

use proptest::{collection::vec, prelude::*};

use super::*;

fn decode_all(stream: &[u8]) -> Result<Vec<Frame>, FrameError> {
    decode_pieces(&[stream], FrameLimits::default())
}

/// The frames of a stream that ends after a whole frame.
fn decode_pieces(pieces: &[&[u8]], limits: FrameLimits) -> Result<Vec<Frame>, FrameError> {
    let (frames, is_whole) = whole_frames(pieces, limits)?;
    assert!(is_whole, "the stream ends within a frame");
    Ok(frames)
}

/// The whole frames of a stream, and whether there is nothing after them.
fn whole_frames(pieces: &[&[u8]], limits: FrameLimits) -> Result<(Vec<Frame>, bool), FrameError> {
    let mut codec = StompCodec::new(limits);
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while let Some(frame) = codec.decode(&mut buffer)? {
            frames.push(frame);
        }
    }
    Ok((frames, !codec.in_frame(&buffer)))
}

fn encoded(frame: &Frame) -> BytesMut {
    let mut out = BytesMut::new();
    StompCodec::encode(frame, &mut out).unwrap();
    out
}

fn small() -> FrameLimits {
    FrameLimits {
        command: 32,
        header_line: 20,
        headers: 3,
        head: 50,
        body: 10,
    }
}

#[test]
fn b04_frames_back_to_back_with_line_ends_between() {
    let stream = b"\n\r\nSEND\ndestination:/queue/a\n\none\0SEND\r\ndestination:/queue/b\r\n\r\ntwo\0\n\n\nDISCONNECT\n\n\0";
    let frames = decode_all(stream).unwrap();
    let seen: Vec<_> = frames
        .iter()
        .map(|f| (f.command, f.header("destination"), &*f.body))
        .collect();
    assert_eq!(
        seen,
        [
            (StompCommand::Send, Some("/queue/a"), &b"one"[..]),
            (StompCommand::Send, Some("/queue/b"), &b"two"[..]),
            (StompCommand::Disconnect, None, &b""[..]),
        ]
    );
}

#[test]
fn b01_bodies_with_content_length_hold_nul() {
    let frames = decode_all(b"SEND\ncontent-length:5\n\na\0b\0c\0SEND\n\nd\0").unwrap();
    assert_eq!(frames[0].body, &b"a\0b\0c"[..]);
    assert_eq!(frames[1].body, &b"d"[..]);
}

#[test]
fn b02_content_length_counts_bytes_and_must_be_right() {
    let frames = decode_all("SEND\ncontent-length:2\n\næ\0".as_bytes()).unwrap();
    assert_eq!(frames[0].body, "æ".as_bytes());
    let error = decode_all("SEND\ncontent-length:1\n\næ\0".as_bytes()).unwrap_err();
    assert!(
        matches!(error, FrameError::WrongContentLength { length: 1 }),
        "{error}"
    );
}

#[test]
fn b07_escapes_in_all_frames_but_connect() {
    let frames =
        decode_all(b"CONNECT\npasscode:a\\cb\\x\n\n\0SEND\na\\cb:c\\n\\r\\\\:d\n\n\0").unwrap();
    assert_eq!(frames[0].header("passcode"), Some("a\\cb\\x"));
    assert_eq!(frames[1].header("a:b"), Some("c\n\r\\:d"));
    assert!(matches!(
        decode_all(b"SEND\na:\\t\n\n\0"),
        Err(FrameError::BadEscape(_))
    ));
    assert!(matches!(
        decode_all(b"SEND\na:b\\\n\n\0"),
        Err(FrameError::BadEscape(_))
    ));
    let login = Frame::new(StompCommand::Connect).with("passcode", "a\\b:c\\");
    let out = encoded(&login);
    assert_eq!(out, "CONNECT\npasscode:a\\b:c\\\n\n\0");
    assert_eq!(decode_all(&out).unwrap(), [login]);
}

/// Wherever the input ends, also within a header: the rest is waited for.
#[test]
fn b05_input_that_ends_within_a_frame_is_waited_for() {
    let stream = b"SEND\r\ndestination:/queue/a\nkey:v\\cw\ncontent-length:3\n\na\0b\0";
    for cut in 1..stream.len() {
        let mut codec = StompCodec::default();
        let mut buffer = BytesMut::from(&stream[..cut]);
        assert_eq!(codec.decode(&mut buffer).unwrap(), None, "{cut}");
        buffer.extend_from_slice(&stream[cut..]);
        let frame = codec.decode(&mut buffer).unwrap().unwrap();
        assert_eq!(frame.header("key"), Some("v:w"), "{cut}");
        assert_eq!((&frame.body[..], buffer.len()), (&b"a\0b"[..], 0), "{cut}");
    }
}

/// As in a quoted selector.
#[test]
fn b62_colons_in_values_are_read_as_they_are_and_written_escaped() {
    let selector = "JMSType = 'a:b' OR JMSType = ':'";
    let stream = format!("SUBSCRIBE\nselector:{selector}\n\n\0");
    let frames = decode_all(stream.as_bytes()).unwrap();
    assert_eq!(frames[0].header("selector"), Some(selector));
    let out = encoded(&frames[0]);
    let escaped = selector.replace(':', "\\c");
    assert_eq!(out, format!("SUBSCRIBE\nselector:{escaped}\n\n\0"));
    assert_eq!(decode_all(&out).unwrap(), frames);
}

#[test]
fn e43_a_body_without_length_ends_at_its_first_nul() {
    let mut codec = StompCodec::default();
    let mut buffer = BytesMut::from(&b"SEND\na:b\n\nx\0y\0\n"[..]);
    let frame = codec.decode(&mut buffer).unwrap().unwrap();
    assert_eq!(frame.body, &b"x"[..]);
    let rest = codec.decode(&mut buffer).unwrap_err();
    assert!(matches!(rest, FrameError::UnknownCommand(_)), "{rest}");
    // What is written here can't be cut short like that.
    let sent = Frame {
        body: Bytes::from_static(b"x\0y"),
        ..frame
    };
    assert_eq!(decode_all(&encoded(&sent)).unwrap()[0].body, sent.body);
}

#[test]
fn first_of_equal_headers_wins_and_nothing_is_trimmed() {
    let frames = decode_all(b"SEND\na: 1 \na:2\nb:\n\n\0").unwrap();
    assert_eq!(
        frames[0].headers,
        [("a".into(), " 1 ".into()), ("b".into(), String::new())]
    );
}

#[test]
fn malformed_frames() {
    assert!(matches!(
        decode_all(b"send\n\n\0"),
        Err(FrameError::UnknownCommand(_))
    ));
    assert!(matches!(
        decode_all(b"SEND\nnocolon\n\n\0"),
        Err(FrameError::MalformedHeader(_))
    ));
    assert!(matches!(
        decode_all(b"SEND\n:value\n\n\0"),
        Err(FrameError::MalformedHeader(_))
    ));
    assert!(matches!(
        decode_all(b"SEND\na:\0\n\n\0"),
        Err(FrameError::NulInHeader)
    ));
    assert!(matches!(
        decode_all(b"SEND\na:\xff\n\n\0"),
        Err(FrameError::NotUtf8)
    ));
    assert!(matches!(
        decode_all(b"ACK\n\nbody\0"),
        Err(FrameError::BodyNotAllowed(_))
    ));
    for length in ["", "-1", "+1", "1 ", "0x1"] {
        let stream = format!("SEND\ncontent-length:{length}\n\na\0");
        assert!(matches!(
            decode_all(stream.as_bytes()),
            Err(FrameError::BadContentLength(_))
        ));
    }
    // Without content-length the body ends at its first NUL, and what follows is no command.
    assert!(matches!(
        decode_all(b"SEND\n\na\0b\0\n"),
        Err(FrameError::UnknownCommand(_))
    ));
}

#[test]
fn b11_limits_hold_before_the_end_is_seen() {
    type Expected = fn(&FrameError) -> bool;
    let cases: [(&[u8], Expected); 6] = [
        (&[b'A'; 34], |e| {
            matches!(e, FrameError::CommandTooLong { .. })
        }),
        (b"SEND\naaaaaaaaaaaaaaaaaaaaaaaa", |e| {
            matches!(e, FrameError::HeaderTooLong { .. })
        }),
        (b"SEND\na:1\nb:1\nc:1\nd:1\n", |e| {
            matches!(e, FrameError::TooManyHeaders { .. })
        }),
        (
            b"SEND\na:3456789012345678\nb:3456789012345678\nc:34567890123456",
            |e| matches!(e, FrameError::HeadTooLarge { .. }),
        ),
        (b"SEND\n\n01234567890", |e| {
            matches!(e, FrameError::BodyTooLarge { .. })
        }),
        (b"SEND\ncontent-length:11\n", |e| {
            matches!(e, FrameError::BodyTooLarge { .. })
        }),
    ];
    for (stream, expected) in cases {
        let mut codec = StompCodec::new(small());
        let error = codec.decode(&mut BytesMut::from(stream)).unwrap_err();
        assert!(expected(&error) && error.is_limit(), "{error}");
    }
    let huge = b"SEND\ncontent-length:99999999999999999999999999\n\n";
    let mut codec = StompCodec::default();
    assert!(
        codec
            .decode(&mut BytesMut::from(&huge[..]))
            .unwrap_err()
            .is_limit()
    );
}

#[test]
fn what_is_just_within_the_limits_passes() {
    let stream = b"SEND\na:345678901234567890\ncontent-length:10\n\n0123456789\0";
    assert_eq!(decode_pieces(&[stream], small()).unwrap()[0].body.len(), 10);
}

#[test]
fn limits_can_grow_after_connect() {
    let mut codec = StompCodec::new(FrameLimits::before_connect());
    let mut buffer = BytesMut::from(&b"CONNECT\na:b\n\n\0SEND\n\nbody\0"[..]);
    assert_eq!(
        codec.decode(&mut buffer).unwrap().unwrap().command,
        StompCommand::Connect
    );
    codec.set_limits(FrameLimits::default());
    assert_eq!(
        codec.decode(&mut buffer).unwrap().unwrap().body,
        &b"body"[..]
    );
}

#[test]
fn whether_a_stream_ends_within_a_frame_is_known() {
    for (stream, within) in [
        ("", false),
        ("\n", false),
        ("SEND\n\nab\0", false),
        ("SEND\n\nab\0\n", false),
        ("SE", true),
        ("SEND\na:b\n", true),
        ("SEND\ncontent-length:3\n\nab", true),
        ("SEND\n\nab\0S", true),
    ] {
        let mut codec = StompCodec::default();
        let mut buffer = BytesMut::from(stream.as_bytes());
        while codec.decode(&mut buffer).unwrap().is_some() {}
        assert_eq!(codec.in_frame(&buffer), within, "{stream:?}");
    }
}

#[test]
fn encoder_refuses_what_stomp_can_not_say() {
    let mut out = BytesMut::new();
    let bad = [
        Frame::new(StompCommand::Send).with("a", "\0"),
        Frame::new(StompCommand::Send).with("", "x"),
        Frame::new(StompCommand::Connect).with("client-id", "a\nb"),
        Frame::new(StompCommand::Connect).with("a:b", "c"),
        Frame {
            body: Bytes::from_static(b"x"),
            ..Frame::new(StompCommand::Ack)
        },
    ];
    for frame in bad {
        assert!(StompCodec::encode(&frame, &mut out).is_err(), "{frame:?}");
    }
    assert!(out.is_empty());
}

#[test]
fn no_header_takes_the_place_of_the_bodys_length() {
    let frame = Frame {
        body: Bytes::from_static(b"body"),
        ..Frame::new(StompCommand::Send).with("a", "b")
    };
    let forged = frame.clone().with("content-length", "1");
    assert_eq!(decode_all(&encoded(&forged)).unwrap(), [frame]);
}

/// A long line or body in many small pieces is looked at once.
#[test]
fn scanning_resumes_where_it_stopped() {
    let mut codec = StompCodec::default();
    let mut buffer = BytesMut::from(&b"SEND\na:"[..]);
    for part in [&b"xxxx"[..], b"\n\nyyyy"] {
        for byte in part {
            buffer.extend_from_slice(&[*byte]);
            assert_eq!(codec.decode(&mut buffer).unwrap(), None);
            assert_eq!(codec.scanned, buffer.len());
        }
    }
    assert_eq!(&buffer[..], b"yyyy");
    buffer.extend_from_slice(b"\0");
    let frame = codec.decode(&mut buffer).unwrap().unwrap();
    assert_eq!((&frame.body[..], codec.scanned), (&b"yyyy"[..], 0));
}

fn any_command() -> impl Strategy<Value = StompCommand> {
    prop_oneof![
        Just(StompCommand::Send),
        Just(StompCommand::Message),
        Just(StompCommand::Error),
        Just(StompCommand::Ack),
        Just(StompCommand::Subscribe),
        Just(StompCommand::Receipt),
    ]
}

prop_compose! {
    fn any_frame()(
        command in any_command(),
        headers in vec(("[^\0]{1,8}", "[^\0]{0,12}"), 0..6),
        body in vec(any::<u8>(), 0..40),
    ) -> Frame {
        let mut frame = Frame::new(command);
        for (name, value) in headers {
            if frame.header(&name).is_none() {
                frame.headers.push((name, value));
            }
        }
        if command.has_body() {
            frame.body = Bytes::from(body);
        }
        frame
    }
}

proptest! {
    #[test]
    fn b09_decoding_an_encoded_frame_gives_it_back(frame in any_frame()) {
        prop_assert_eq!(decode_all(&encoded(&frame)).unwrap(), vec![frame]);
    }

    #[test]
    fn b03_any_split_of_a_stream_gives_the_same_frames(
        frames in vec((any_frame(), "[\n]{0,3}"), 0..4),
        mut cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = Vec::new();
        for (frame, line_ends) in &frames {
            stream.extend_from_slice(&encoded(frame));
            stream.extend_from_slice(line_ends.as_bytes());
        }
        let mut at: Vec<usize> = cuts.drain(..).map(|cut| cut.index(stream.len() + 1)).collect();
        at.push(0);
        at.push(stream.len());
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let expected: Vec<Frame> = frames.into_iter().map(|(frame, _)| frame).collect();
        prop_assert_eq!(&decode_pieces(&pieces, FrameLimits::default()).unwrap(), &expected);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(decode_pieces(&bytes, FrameLimits::default()).unwrap(), expected);
    }

    #[test]
    fn random_bytes_never_panic(
        start in prop_oneof![Just(""), Just("SEND\n"), Just("SEND\ncontent-length:3\n\n"), Just("MESSAGE\na:b\n\n")],
        bytes in vec(any::<u8>(), 0..200),
    ) {
        let stream = [start.as_bytes(), &bytes].concat();
        let pieces: Vec<&[u8]> = stream.chunks(3).collect();
        let whole = whole_frames(&[&stream], FrameLimits::default()).map(|(frames, _)| frames);
        let split = whole_frames(&pieces, FrameLimits::default()).map(|(frames, _)| frames);
        prop_assert_eq!(whole.is_ok(), split.is_ok());
    }

    #[test]
    fn carriage_returns_before_line_ends_do_not_matter(frame in any_frame()) {
        prop_assume!(!frame.body.contains(&b'\n'));
        let plain = encoded(&frame);
        let head = plain.len() - frame.body.len() - 1;
        let mut crlf = Vec::new();
        for byte in &plain[..head] {
            if *byte == b'\n' {
                crlf.push(b'\r');
            }
            crlf.push(*byte);
        }
        crlf.extend_from_slice(&plain[head..]);
        prop_assert_eq!(decode_all(&crlf).unwrap(), vec![frame]);
    }
}
