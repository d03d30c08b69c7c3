use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::stomp::frame::{FrameWriter, StompCommand};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

fn pair(stalls: StallLimits) -> (Wire<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(64);
    (Wire::new(ours, StompCodec::default(), stalls), theirs)
}

const PATIENT: StallLimits = StallLimits {
    read: HOUR,
    write: HOUR,
};

/// A peer is given up when it was silent for two of its intervals; this side beats twice as often as it must.
#[tokio::test]
async fn intervals() {
    let (mut wire, _peer) = pair(PATIENT);
    assert_eq!(wire.next_timer(), None);
    wire.open(
        FrameLimits::default(),
        Beats {
            send: Some(SECOND),
            expect: Some(2 * SECOND),
        },
    );
    assert_eq!(wire.silent_at(), Some(wire.last_read + 4 * SECOND));
    assert_eq!(wire.beat_at(), Some(wire.last_write + SECOND / 2));
    assert_eq!(wire.next_timer(), wire.beat_at());
}

/// A thousand intervals, of which each beat comes up to 40 % too early or too late.
#[tokio::test]
async fn b13_beats_that_come_a_little_late_are_good_enough() {
    let (mut wire, _peer) = pair(PATIENT);
    let beats = Beats {
        send: None,
        expect: Some(SECOND),
    };
    wire.open(FrameLimits::default(), beats);
    for beat in 0..1000 {
        let next = wire.last_read + SECOND * (60 + beat * 53 % 81) / 100;
        wire.on_timer(next).unwrap();
        wire.last_read = next;
    }
    wire.on_timer(wire.last_read + SECOND * 199 / 100).unwrap();
    let error = wire.on_timer(wire.last_read + 2 * SECOND).unwrap_err();
    assert!(matches!(error, WireError::Silent(2000)), "{error}");
}

#[tokio::test]
async fn whatever_waits_to_be_written_is_beat_enough() {
    let (mut wire, _peer) = pair(PATIENT);
    wire.open(
        FrameLimits::default(),
        Beats {
            send: Some(SECOND),
            expect: None,
        },
    );
    wire.output.extend_from_slice(b"bytes");
    assert_eq!(wire.beat_at(), None);
}

#[tokio::test]
async fn a_beat_is_written_when_nothing_else_is() {
    let (mut wire, mut peer) = pair(PATIENT);
    let soon = Duration::from_millis(20);
    wire.open(
        FrameLimits::default(),
        Beats {
            send: Some(soon),
            expect: None,
        },
    );
    let turning = async { while wire.turn(true).await.is_ok() {} };
    tokio::select! {
        () = turning => unreachable!(),
        byte = peer.read_u8() => assert_eq!(byte.unwrap(), b'\n'),
    }
}

#[tokio::test]
async fn any_byte_is_heard() {
    let (mut wire, mut peer) = pair(PATIENT);
    let before = wire.last_read;
    peer.write_all(b"SEN").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    wire.turn(true).await.unwrap();
    assert!(wire.last_read > before);
    // A frame has begun.
    assert!(wire.read_stalled_at().is_some());
}

/// While this side does not read, the peer's silence is not the peer's fault.
#[tokio::test]
async fn not_reading_is_not_hearing_nothing() {
    let (mut wire, _peer) = pair(PATIENT);
    let silence = Duration::from_millis(20);
    wire.open(
        FrameLimits::default(),
        Beats {
            send: Some(silence),
            expect: Some(silence),
        },
    );
    for _ in 0..10 {
        wire.turn(false).await.unwrap();
    }
    let error = loop {
        if let Err(error) = wire.turn(true).await {
            break error;
        }
    };
    assert!(matches!(error, WireError::Silent(_)), "{error}");
}

/// A process that was stopped for a while, or had no processor, does not take that for its peer's silence.
#[expect(
    clippy::disallowed_methods,
    reason = "this thread is to stand still, with all that runs on it"
)]
#[tokio::test]
async fn what_came_while_this_side_stood_still_is_heard() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let mut wire = Wire::new(stream, StompCodec::default(), PATIENT);
    let silence = Duration::from_millis(100);
    let beats = Beats {
        send: None,
        expect: Some(silence),
    };
    wire.open(FrameLimits::default(), beats);
    let standing_still = async {
        for _ in 0..8 {
            io::Write::write_all(&mut peer, b"\n").unwrap();
            std::thread::sleep(3 * silence);
            tokio::time::sleep(silence / 10).await;
        }
    };
    let turning = async {
        loop {
            wire.turn(true).await.unwrap();
            assert!(wire.frame().unwrap().is_none());
        }
    };
    tokio::select! {
        () = standing_still => {}
        () = turning => {}
    }
}

#[tokio::test]
async fn stalls_and_deadlines() {
    let short = Duration::from_millis(20);
    let (mut wire, mut peer) = pair(StallLimits {
        read: short,
        write: HOUR,
    });
    peer.write_all(b"SEND\n").await.unwrap();
    wire.turn(true).await.unwrap();
    assert!(wire.frame().unwrap().is_none());
    assert!(matches!(
        wire.turn(true).await,
        Err(WireError::ReadStalled(_))
    ));

    let (mut wire, _peer) = pair(StallLimits {
        read: HOUR,
        write: short,
    });
    FrameWriter::new(&mut wire.output, StompCommand::Send).finish(&[b'x'; 1000]);
    wire.turn(true).await.unwrap();
    assert!(matches!(
        wire.turn(true).await,
        Err(WireError::WriteStalled(_))
    ));

    let (mut wire, _peer) = pair(PATIENT);
    wire.set_deadline(Some(Instant::now() + short));
    assert!(matches!(wire.turn(true).await, Err(WireError::Deadline)));

    let (mut wire, peer) = pair(PATIENT);
    drop(peer);
    assert!(matches!(wire.turn(true).await, Err(WireError::Closed)));
}

#[tokio::test]
async fn the_room_that_a_large_frame_took_is_given_back() {
    let (ours, mut peer) = duplex(64 << 10);
    let mut wire = Wire::new(ours, StompCodec::default(), PATIENT);
    let body = vec![b'x'; 8 * KEPT_BUFFER];
    FrameWriter::new(&mut wire.output, StompCommand::Send).finish(&body);
    let sent = wire.output.to_vec();
    let echo = async {
        let mut received = vec![0; sent.len()];
        peer.read_exact(&mut received).await.unwrap();
        peer.write_all(&received).await.unwrap();
        peer
    };
    let turning = async {
        let mut frame = None;
        while frame.is_none() {
            wire.turn(true).await.unwrap();
            frame = wire.frame().unwrap();
        }
        assert_eq!(frame.unwrap().body.len(), body.len());
    };
    let (mut peer, ()) = tokio::join!(echo, turning);
    for _ in 0..3 {
        peer.write_all(b"\n").await.unwrap();
        wire.turn(true).await.unwrap();
        assert_eq!(wire.frame().unwrap(), None);
    }
    for (name, buffer) in [("input", &mut wire.input), ("output", &mut wire.output)] {
        assert!(!buffer.try_reclaim(KEPT_BUFFER + 1), "{name}");
    }
}

#[tokio::test]
async fn a_socket_notices_that_its_peer_has_vanished() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    prepare(&stream).unwrap();
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), KEEP_ALIVE);
}
