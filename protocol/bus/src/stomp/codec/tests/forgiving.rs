//! What a broker passes on is read as far as it can be.

use super::*;

/// The frames of a stream that comes in pieces of this size.
fn read(stream: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
    let mut codec = StompCodec::forgiving(small());
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for bytes in stream.chunks(piece) {
        buffer.extend_from_slice(bytes);
        while let Some(frame) = codec.decode(&mut buffer)? {
            frames.push(frame);
        }
        // Command lines have at most 32 bytes, and so has nothing more that is held.
        assert!(buffer.len() <= 33, "{}", buffer.len());
    }
    assert!(!codec.in_frame(&buffer), "the stream ends within a frame");
    Ok(frames)
}

const AFTER: &[u8] = b"MESSAGE\nack:2\n\nnext\0";

/// The first frame of a stream, after which another one is read all the same.
fn first(stream: &[u8]) -> Frame {
    let whole = [stream, AFTER].concat();
    let mut frames = read(&whole, whole.len()).unwrap();
    for piece in [1, 2, 3, 7, 11] {
        assert_eq!(read(&whole, piece).unwrap(), frames, "{piece}");
    }
    let next = frames.pop().unwrap();
    assert_eq!((next.header("ack"), &*next.body), (Some("2"), &b"next"[..]));
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

#[test]
fn a_body_that_is_too_long_is_passed_over_and_its_length_told() {
    for stream in [
        &b"MESSAGE\nack:1\ncontent-length:11\n\n12345\x00789ab\0"[..],
        b"MESSAGE\nack:1\n\n123456789ab\0",
        b"\nMESSAGE\nack:1\ncontent-length:11\ncontent-length:2\n\n123456789ab\0\n",
    ] {
        let frame = first(stream);
        assert_eq!(frame.header("ack"), Some("1"));
        assert_eq!((&*frame.body, frame.left_out), (&b""[..], Some(11)));
    }
    let frame = first(b"MESSAGE\nack:1\n\n123456789a\0");
    assert_eq!((&*frame.body, frame.left_out), (&b"123456789a"[..], None));
}

#[test]
fn of_too_many_headers_those_are_kept_that_are_needed() {
    let frame = first(b"MESSAGE\na:1\nb:2\nc:3\nd:4\nack:1\nsubscription:s\n\nbody\0");
    let names: Vec<&str> = frame.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b", "c", "ack", "subscription"]);
    assert_eq!(&*frame.body, b"body");
    // More than 50 bytes in all, in no more than three lines.
    let long =
        b"MESSAGE\na:3456789012345678\nb:3456789012345678\nc:3456789012345678\nack:1\n\nbody\0";
    let frame = first(long);
    let names: Vec<&str> = frame.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b", "ack"]);
}

#[test]
fn a_header_line_that_is_too_long_is_left_out() {
    let frame = first(b"MESSAGE\nx:12345678901234567890\nack:1\n\nbody\0");
    assert_eq!(frame.headers, [("ack".to_owned(), "1".to_owned())]);
    assert_eq!(&*frame.body, b"body");
}

#[test]
fn headers_that_can_not_be_decoded_are_taken_as_they_are() {
    let frame = first(b"MESSAGE\na\\q:\\t\nno colon\nack:\xff\n\nbody\0");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        frame.headers,
        [header("a\\q", "\\t"), header("ack", "\u{fffd}")]
    );
}

/// Where a body ends must be known.
#[test]
fn what_would_make_frames_of_something_else_is_refused() {
    for stream in [
        &b"MESSAGE\ncontent-length:x\n\nbody\0"[..],
        b"MESSAGE\ncontent-length:2\n\nbody\0",
        b"MESSAGE\ncontent-length:11\n\n123456789abc\0",
        b"WHAT\n\n\0",
    ] {
        read(stream, 4).unwrap_err();
    }
}

proptest! {
    /// What is no more than allowed is read as ever.
    #[test]
    fn a_forgiving_codec_reads_what_a_strict_one_reads(
        frames in vec(("[a-c]{1,3}", "[a-z\\\\:]{0,5}", vec(any::<u8>(), 0..10)), 1..5),
        piece in 1..20usize,
    ) {
        let mut stream = BytesMut::new();
        for (name, value, body) in frames {
            let frame = Frame { body: body.into(), ..Frame::new(StompCommand::Message).with(&name, value) };
            StompCodec::encode(&frame, &mut stream).unwrap();
        }
        let (strict, _) = whole_frames(&[&stream], FrameLimits { header_line: 20, ..small() }).unwrap();
        prop_assert_eq!(read(&stream, piece), Ok(strict));
    }
}
