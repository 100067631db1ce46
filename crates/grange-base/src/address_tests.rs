use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn policy(networks: &[&str]) -> AddressPolicy {
    AddressPolicy::new(networks.iter().map(|text| text.parse().unwrap()).collect(), Vec::new())
}

#[test]
fn every_special_network_is_told_from_public_addresses_at_its_edges() {
    use AddressKind::*;
    for (first, last, kind) in [
        ("0.0.0.0", "0.255.255.255", Unspecified),
        ("10.0.0.0", "10.255.255.255", Private),
        ("100.64.0.0", "100.127.255.255", SharedAddressSpace),
        ("127.0.0.0", "127.255.255.255", Loopback),
        ("169.254.0.0", "169.254.255.255", LinkLocal),
        ("172.16.0.0", "172.31.255.255", Private),
        ("192.0.0.0", "192.0.0.255", Reserved),
        ("192.0.2.0", "192.0.2.255", Reserved),
        ("192.88.99.0", "192.88.99.255", Reserved),
        ("192.168.0.0", "192.168.255.255", Private),
        ("198.18.0.0", "198.19.255.255", Reserved),
        ("198.51.100.0", "198.51.100.255", Reserved),
        ("203.0.113.0", "203.0.113.255", Reserved),
    ] {
        let (IpAddr::V4(low), IpAddr::V4(high)) = (ip(first), ip(last)) else { unreachable!() };
        assert_eq!((AddressKind::of(low.into()), AddressKind::of(high.into())), (kind, kind), "{first}");
        let after = Ipv4Addr::from(u32::from(high) + 1);
        assert_eq!(AddressKind::of(after.into()), Public, "{after} follows {last}");
        if first != "0.0.0.0" {
            let before = Ipv4Addr::from(u32::from(low) - 1);
            assert_eq!(AddressKind::of(before.into()), Public, "{before} precedes {first}");
        }
    }
    assert_eq!(AddressKind::of(ip("223.255.255.255")), Public);
    assert_eq!(AddressKind::of(ip("224.0.0.0")), Multicast);
    assert_eq!(AddressKind::of(ip("239.255.255.255")), Multicast);
    assert_eq!(AddressKind::of(ip("240.0.0.0")), Reserved);
    assert_eq!(AddressKind::of(ip("255.255.255.255")), Reserved);
}

#[test]
fn addresses_of_ipv6_are_judged_by_themselves_and_by_what_they_carry() {
    use AddressKind::*;
    for (text, kind) in [
        ("::", Unspecified),
        ("::1", Loopback),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("fec0::1", Private),
        ("fc00::1", UniqueLocal),
        ("fdff:ffff::1", UniqueLocal),
        ("ff02::1", Multicast),
        ("2001:db8::1", Reserved),
        ("3fff:fff::1", Reserved),
        ("100::1", Reserved),
        ("64:ff9b:1::a00:1", Reserved),
        ("4000::1", Reserved),
        ("2606:4700::1", Public),
        ("2001:67c:2e8:22::c100:68b", Public),
        // Mapped, compatible, translated, 6to4, Teredo, ISATAP.
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:169.254.169.254", LinkLocal),
        ("::ffff:8.8.8.8", Public),
        ("::127.0.0.1", Loopback),
        ("::8.8.8.8", Reserved),
        ("::ffff:0:10.0.0.1", Private),
        ("64:ff9b::10.0.0.1", Private),
        ("64:ff9b::8.8.8.8", Public),
        ("2002:7f00:1::1", Loopback),
        ("2002:808:808::1", Public),
        // Teredo: server 65.54.227.120, client 192.168.0.1 with its bits turned round.
        ("2001:0:4136:e378:8000:63bf:3f57:fffe", Private),
        ("2001:0:a00:1:8000:63bf:f7f7:f7f7", Private),
        ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", Public),
        ("2606:4700::5efe:10.0.0.1", Private),
        ("2606:4700::200:5efe:127.0.0.1", Loopback),
    ] {
        assert_eq!(AddressKind::of(ip(text)), kind, "{text}");
    }
}

#[test]
fn only_what_the_operator_allows_is_reached_beside_public_addresses() {
    let none = AddressPolicy::default();
    assert_eq!(none.check_ip(ip("8.8.8.8")), Ok(()));
    let refused = none.check_ip(ip("169.254.169.254")).unwrap_err();
    assert!(refused.to_string().starts_with("169.254.169.254 is a link-local address"), "{refused}");
    let loopback = policy(&["127.0.0.0/8"]);
    for (text, allowed) in [
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("::ffff:127.0.0.1", true),
        ("::1", false),
        ("10.0.0.1", false),
    ] {
        assert_eq!(loopback.check_ip(ip(text)).is_ok(), allowed, "{text}");
    }
}

#[test]
fn an_endpoint_is_one_address_with_one_port() {
    let endpoint: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let policy = AddressPolicy::new(Vec::new(), vec![endpoint]);
    assert!(policy.check(endpoint).is_ok());
    for other in ["127.0.0.1:7070", "127.0.0.2:8080", "[::1]:8080"] {
        assert!(policy.check(other.parse().unwrap()).is_err(), "{other}");
    }
    assert!(policy.check_ip(endpoint.ip()).is_err());
}

#[test]
fn networks_are_read_as_addresses_and_in_cidr_notation() {
    for (text, shown) in [
        ("10.0.0.0/8", Some("10.0.0.0/8")),
        ("10.1.2.3/8", Some("10.0.0.0/8")),
        (" 192.0.2.7 ", Some("192.0.2.7/32")),
        ("::1", Some("::1/128")),
        ("fd00::/8", Some("fd00::/8")),
        ("10.0.0.0/33", None),
        ("intranet", None),
        ("", None),
    ] {
        let network = text.parse::<Network>().ok().map(|network| network.to_string());
        assert_eq!(network.as_deref(), shown, "{text:?}");
    }
}

proptest! {
    /// No way of writing an IPv4 address inside an IPv6 address gets past the judgement of the IPv4 address.
    #[test]
    fn a_special_address_stays_special_in_every_form(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from(bits);
        let [a, b, c, d] = v4.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let forms = [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
            Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 0),
            Ipv6Addr::new(0x2001, 0, 0x0808, 0x0808, 0, 0, !high, !low),
        ];
        if AddressKind::of(v4.into()) != AddressKind::Public {
            for form in forms {
                prop_assert_ne!(AddressKind::of(form.into()), AddressKind::Public, "{}", form);
            }
        }
    }
}
