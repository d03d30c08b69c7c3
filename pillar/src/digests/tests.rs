use super::*;

const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";
const P7: &[u8] = b"pillar test 7\n";

fn spec(checksum_type: ChecksumType, salt: Option<&[u8]>) -> Result<Spec, SpecError> {
    Spec::try_from(&ChecksumSpec {
        checksum_type,
        checksum_salt: salt.map(|salt| HexBinary::from(salt.to_vec())),
        other_checksum_type: None,
    })
}

fn sum(bytes: &[u8], checksum_type: ChecksumType, salt: Option<&[u8]>) -> String {
    let spec = spec(checksum_type, salt).unwrap();
    Checksums::of(bytes, std::slice::from_ref(&spec))
        .value(&spec)
        .unwrap()
        .to_string()
}

#[test]
fn published_vectors() {
    assert_eq!(
        sum(FOX, ChecksumType::Md5, None),
        "9e107d9d372bb6826bd81d3542a419d6"
    );
    assert_eq!(
        sum(FOX, ChecksumType::Sha1, None),
        "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
    );
    let key = Some(&b"key"[..]);
    assert_eq!(
        sum(FOX, ChecksumType::HmacMd5, key),
        "80070713463e7749b90c2dc24911e275"
    );
    assert_eq!(
        sum(FOX, ChecksumType::HmacSha1, key),
        "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"
    );
    assert_eq!(
        sum(b"abc", ChecksumType::Sha256, None),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        sum(b"abc", ChecksumType::Sha384, None),
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
         8086072ba1e7cc2358baeca134c825a7"
    );
    assert_eq!(
        sum(b"abc", ChecksumType::Sha512, None),
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    );
}

/// RFC 4231 section 4.3.
#[test]
fn hmac_sha2_vectors() {
    let data = b"what do ya want for nothing?";
    let key = Some(&b"Jefe"[..]);
    assert_eq!(
        sum(data, ChecksumType::HmacSha256, key),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    assert_eq!(
        sum(data, ChecksumType::HmacSha384, key),
        "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
         8e2240ca5e69e2c78b3239ecfab21649"
    );
    assert_eq!(
        sum(data, ChecksumType::HmacSha512, key),
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
         9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    );
}

#[test]
fn fixtures() {
    let salt = Some(&[0xab, 0xcd][..]);
    assert_eq!(
        sum(P7, ChecksumType::Md5, None),
        "4a37f973b3c9fede0e1fb3f07b65a93b"
    );
    assert_eq!(
        sum(P7, ChecksumType::Sha1, None),
        "2df965adcf27c664a5fdb5f5fae2ec32c6097000"
    );
    assert_eq!(
        sum(P7, ChecksumType::HmacMd5, salt),
        "29b74fb6f71755e9434f713b8f2ae79a"
    );
    assert_eq!(
        sum(P7, ChecksumType::HmacSha1, salt),
        "19c971370b9cb828f1f0b7b396536aede1228373"
    );
    assert_eq!(
        sum(P7, ChecksumType::HmacMd5, Some(&[0x64])),
        "624402c58c00adb94152385ed90d1f95"
    );
    assert_eq!(
        sum(b"", ChecksumType::Md5, None),
        "d41d8cd98f00b204e9800998ecf8427e"
    );
    let r1024: Vec<u8> = (0..=255).cycle().take(1024).collect();
    assert_eq!(
        sum(&r1024, ChecksumType::Md5, None),
        "b2ea9f7fcea831a4a63b213f41a8855b"
    );
}

#[test]
fn many_specs_in_one_pass_equal_one_spec_each() {
    let bytes: Vec<u8> = (0..=250).cycle().take(3 * PIECE + 17).collect();
    let specs = [
        spec(ChecksumType::Md5, None).unwrap(),
        spec(ChecksumType::HmacSha512, Some(b"k")).unwrap(),
        spec(ChecksumType::Md5, Some(b"")).unwrap(),
        spec(ChecksumType::Sha256, None).unwrap(),
    ];
    let mut digests = Digests::new(&specs);
    for piece in bytes.chunks(1000) {
        digests.update(piece);
    }
    let all = digests.finish();
    assert_eq!(all.iter().count(), 3);
    for spec in &specs {
        let alone = Checksums::of(&bytes, std::slice::from_ref(spec));
        assert_eq!(all.value(spec), alone.value(spec));
    }
}

#[test]
fn salts_by_the_table() {
    use ChecksumType::{HmacMd5, HmacSha512, Md5, Other, Sha512};
    assert_eq!(spec(Md5, Some(b"")), spec(Md5, None));
    assert_eq!(spec(Md5, Some(b"x")), Err(SpecError::SaltNotUsed(Md5)));
    assert_eq!(
        spec(Sha512, Some(b"x")),
        Err(SpecError::SaltNotUsed(Sha512))
    );
    assert_eq!(spec(HmacMd5, None), Err(SpecError::SaltMissing(HmacMd5)));
    assert_eq!(
        spec(HmacSha512, Some(b"")),
        Err(SpecError::SaltMissing(HmacSha512))
    );
    for salt in [None, Some(&b""[..]), Some(&b"x"[..])] {
        assert_eq!(spec(Other, salt), Err(SpecError::Other));
    }
}

#[test]
fn round_trip_to_the_wire() {
    let plain = spec(ChecksumType::Sha1, Some(b"")).unwrap();
    assert_eq!(ChecksumSpec::from(&plain).checksum_salt, None);
    let keyed = spec(ChecksumType::HmacSha1, Some(b"\xab")).unwrap();
    assert_eq!(Spec::try_from(&ChecksumSpec::from(&keyed)), Ok(keyed));
}
