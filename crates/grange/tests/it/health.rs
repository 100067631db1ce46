//! What load balancers, monitors and scrapers see.

use crate::harness::Grange;

#[tokio::test]
async fn a_node_tells_its_health() {
    let grange = Grange::new();
    let node = grange.up();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |url: String| {
        let answer = http.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for port in ["admin", "node"] {
        assert_eq!(get(format!("{}/healthz", node.url(port))).await, (200, "ok\n".to_owned()));
        let (status, body) = get(format!("{}/readyz", node.url(port))).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("\"database\",\"ok\":true"), "{body}");
    }
    let (status, body) = get(format!("{}/metrics", node.url("node"))).await;
    assert_eq!(status, 200);
    assert!(body.contains("grange_data_free_bytes"), "{body}");
    // The admin port may be open to more people than the operator's network.
    assert_eq!(get(format!("{}/metrics", node.url("admin"))).await.0, 404);
    let (status, body) = get(node.url("admin")).await;
    assert_eq!(status, 200);
    assert!(body.contains("<h1>Grange</h1>"), "{body}");
    assert_eq!(node.stop(), 0);
}

#[tokio::test]
async fn nobody_gets_in_without_a_key() {
    let grange = Grange::new();
    let node = grange.up();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for port in ["admin", "node"] {
        for path in ["/api/v1/about", "/api/v1/users", "/api/v1/changes", "/api/v1/nodes", "/api/v1/database"]
        {
            let url = format!("{}{path}", node.url(port));
            let answer = http.get(&url).send().await.unwrap();
            assert_eq!(answer.status(), 401, "{url}");
            let answer = http.get(&url).bearer_auth("grange_wrong").send().await.unwrap();
            assert_eq!(answer.status(), 401, "{url} with a wrong token");
        }
    }
    // The name of a local user is only believed together with the local token.
    let url = format!("{}/api/v1/users", node.url("node"));
    let answer = http.get(url).header("grange-local-user", "root").send().await.unwrap();
    assert_eq!(answer.status(), 401);
}
