"""Texts of several scripts and kinds, for measuring token estimates: talk, news, manuals, code, data."""

from __future__ import annotations

SAMPLES: dict[str, str] = {
    "english": (
        "The certificate expired last night, so every request to the gateway failed with a handshake error. "
        "We renewed it by hand, restarted the two edge servers and checked the chain from outside. Could you "
        "tell me whether the renewal job ran at all yesterday, and if it did, why nobody was told that it "
        "had failed? I would like to have a short report with the times, the hosts that were hit and what we "
        "are going to change."
    ),
    "chinese talk": (
        "昨天晚上证书过期了，所以网关上的所有请求都在握手的时候失败。我们手动更新了证书，重启了两台边缘服务器"
        "，然后从外面检查了整条证书链。你能告诉我昨天的自动更新任务到底有没有运行吗？如果运行了，为什么没有人"
        "收到失败的通知？我想要一份简短的报告，写清楚时间、受影响的主机，以及我们接下来要改什么。另外，请顺便"
        "看一下下个月还有哪些证书快要到期了，谢谢。"
    ),
    "chinese news": (
        "据新华社报道，今年前三季度国内生产总值同比增长百分之五点二，其中高技术制造业增加值增长较快，居民消费"
        "价格保持基本稳定。专家表示，随着一系列政策措施逐步落实，市场信心明显增强，新能源汽车、人工智能和集成"
        "电路等领域的投资持续扩大，但外部环境仍然复杂严峻，需要进一步扩大内需，推动经济高质量发展，保障和改善"
        "民生，防范化解重点领域风险。"
    ),
    "chinese technical": (
        "本节介绍如何配置会话存储。首先创建数据库连接，并在启动时执行迁移脚本；其次，为每个用户建立独立的命名"
        "空间，避免不同租户之间的数据相互覆盖。当并发写入发生冲突时，系统会检查租约的序号，只有持有最新序号的"
        "写入者才能提交事务。如果节点在写入检查点之前崩溃，恢复过程会从最近一次成功的检查点重新执行，已经完成"
        "的副作用不会重复触发。"
    ),
    "chinese traditional": (
        "昨天晚上憑證過期了，所以閘道上的所有請求都在交握的時候失敗。我們手動更新了憑證，重新啟動了兩台邊緣伺"
        "服器，然後從外面檢查了整條憑證鏈。你能告訴我昨天的自動更新工作到底有沒有執行嗎？如果執行了，為什麼沒"
        "有人收到失敗的通知？我想要一份簡短的報告，寫清楚時間、受影響的主機，以及我們接下來要改什麼。"
    ),
    "japanese": (
        "昨夜、証明書の有効期限が切れたため、ゲートウェイへのすべてのリクエストがハンドシェイクの段階で失敗し"
        "ました。手動で証明書を更新し、二台のエッジサーバーを再起動してから、外部から証明書チェーンを確認しま"
        "した。昨日の自動更新ジョブがそもそも実行されたのかどうか、実行されたのであれば、なぜ失敗したことが誰"
        "にも知らされなかったのかを教えていただけますか。時刻、影響を受けたホスト、今後の変更点をまとめた短い"
        "報告書をお願いします。"
    ),
    "korean": (
        "어젯밤에 인증서가 만료되어 게이트웨이로 들어오는 모든 요청이 핸드셰이크 단계에서 실패했습니다. "
        "우리는 인증서를 수동으로 갱신하고 엣지 서버 두 대를 다시 시작한 다음 외부에서 인증서 체인을 "
        "확인했습니다. 어제 자동 갱신 작업이 실제로 실행되었는지, 실행되었다면 왜 실패했다는 사실을 아무도 "
        "알지 못했는지 알려 주시겠습니까? 시간과 영향을 받은 호스트, 앞으로 바꿀 점을 담은 짧은 보고서를 "
        "받고 싶습니다."
    ),
    "chinese and english": (
        "请把 gateway 的 TLS certificate 更新一下，然后 restart 两台 edge server。更新之后用 openssl "
        "s_client 检查 chain，确认 issuer 是 Let's Encrypt，并且 notAfter 在 2027-03-01 之后。如果 renew "
        "失败，请看 /var/log/letsencrypt 里的日志，把 error message 发给我，我会在 Slack 的 #ops "
        "频道里跟进这个 issue。"
    ),
    "russian": (
        "Вчера вечером истёк срок действия сертификата, поэтому все запросы к шлюзу завершались ошибкой при "
        "рукопожатии. Мы обновили его вручную, перезапустили два пограничных сервера и проверили цепочку "
        "снаружи. Скажите, пожалуйста, запускалось ли вчера задание на обновление, и если да, почему никто "
        "не узнал, что оно не удалось?"
    ),
    "german": (
        "Gestern Abend ist das Zertifikat abgelaufen, deshalb scheiterten alle Anfragen an das Gateway schon "
        "beim Verbindungsaufbau. Wir haben es von Hand erneuert, beide Server am Rand neu gestartet und die "
        "Kette von außen geprüft. Können Sie mir sagen, ob der Auftrag zur Erneuerung gestern überhaupt "
        "lief, und wenn ja, warum niemand erfahren hat, dass er fehlgeschlagen ist?"
    ),
    "emoji": (
        "Deploy fertig 🎉🚀 Danke an alle 🙏 Es gab kurz Alarm 🔥 aber jetzt ist alles grün ✅ und die Kurve "
        "sieht gut aus 📈 Morgen früh schauen wir noch einmal auf die Fehlerquote 👀 und dann gehen wir "
        "zusammen Kaffee trinken ☕😄"
    ),
    "code": (
        "async def renew(self, host: str, *, days: int = 30) -> Certificate:\n"
        '    """Renew the certificate of a host if it ends soon."""\n'
        "    current = await self._store.load(host)\n"
        "    if current is not None and current.not_after - self._clock.now() > days * 86400:\n"
        "        return current\n"
        "    async with self._lock(host):\n"
        "        fresh = await self._authority.issue(host, key=self._keys[host])\n"
        "        await self._store.save(host, fresh)\n"
        "        for listener in self._listeners:\n"
        "            listener.on_renewed(host, fresh)\n"
        "    return fresh\n"
    ),
    "json": (
        '{"host": "edge-01.example.org", "port": 443, "chain": [{"subject": "CN=edge-01.example.org", '
        '"issuer": "CN=R3, O=Let\'s Encrypt, C=US", "not_before": "2026-09-01T00:00:00Z", "not_after": '
        '"2026-11-30T00:00:00Z", "serial": "04a1b2c3d4e5f60718293a4b5c6d7e8f"}], "verified": false, '
        '"errors": ["certificate has expired"], "ms": 12.5}'
    ),
}
