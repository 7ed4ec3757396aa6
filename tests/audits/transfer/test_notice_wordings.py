"""Notices in wordings of many sites and languages, and short texts of their subjects that are none."""

from __future__ import annotations

import pytest

from truerank.text.page_faults import PageWords, _plain, _signs, _spoken_of, page_fault

BEFORE = PageWords(
    "Growing roses in clay",
    "Roses need deep holes in clay, with compost and sand at the bottom. Water them each week in the first summer, and "
    "cut them back hard in March before the buds swell.",
)


@pytest.mark.parametrize(
    ("title", "body"),
    [
        # Robot checks.
        ("One more step", "Complete the puzzle below so that we know you are a real person."),
        ("Press & Hold", "Press and hold the button until the bar is full. Reference ID 7f3a-11."),
        ("", "Select all images with traffic lights, then click Next."),
        ("", "Cochez la case pour prouver que vous n'êtes pas une machine."),
        ("Moment bitte", "Wir prüfen, ob die Verbindung sicher ist. Gleich geht es weiter."),
        # Maintenance.
        ("We'll be right back", "Our engineers are working on the site. Thank you for your patience."),
        ("", "Diese Seite wird gerade überarbeitet. Wir sind bald wieder für Sie da."),
        ("", "Ведутся технические работы. Скоро мы вернёмся."),
        # Content and accounts that were removed.
        ("", "This post was taken down by a moderator for breaking the community rules."),
        ("Gone", "We retired this guide in spring. Nothing replaces it."),
        ("", "Content withheld in your country in response to a court order."),
        ("", "Questo contenuto è stato cancellato dall'utente."),
        # Soft errors.
        ("Whoops", "You've followed a dead link. Head back to the front page."),
        ("", "Sorry, we can't seem to find that article. Maybe try a search?"),
        ("", "Sidan du letade efter saknas."),
        ("", "Страница потерялась. Перейдите на главную."),
        # Parked domains, and what servers show before there is a site.
        ("rosebank.net", "Related searches: Garden Centres, Compost, Hoses, Holidays"),
        (
            "rosenhof.de",
            "rosenhof.de ist eine gute Informationsquelle zu diesem Thema. Weitere Links finden Sie unten.",
        ),
        ("The server runs", "This is the default page of the web server. Put your own files into the document root."),
        ("", "Nobody has published a site at this address. Owners can upload one in the control panel."),
        ("", "O domínio está estacionado e ainda não tem conteúdo."),
        ("", "Domæne til salg. Skriv til mæglerne for at få en pris."),
        ("", "A domain eladó, érdeklődjön a tulajdonosnál."),
        ("", "Этот домен продаётся. Узнать, как его купить."),
        ("", "Bu alan adı park edilmiş, site yapım aşamasında."),
        ("", "このドメインは売り出し中です。購入のご相談はこちら。"),
        ("", "此域名正在出售,欢迎购买。"),
    ],
)
def test_notices_of_many_sites(title: str, body: str) -> None:
    found = page_fault(BEFORE, PageWords(title or BEFORE.title, body))
    assert found.reason == "error page", found


@pytest.mark.parametrize(
    ("title", "body"),
    [
        (
            "A search for errors in the records of a library",
            "Wrong numbers were traced by hand in nine of ten drawers.",
        ),
        ("Robots that sort parcels", "Arms with two cameras lift parcels from a belt and lay them into bins by size."),
        ("Maintenance of lifts", "Ropes last nine years where the pulleys are greased; the brakes are tested in June."),
        ("Users of reading rooms", "Half the readers came on foot, and most of them before noon. Many were students."),
        ("Wanderwege", "Der Weg führt am Bach entlang bis zur alten Mühle, dann steil hinauf durch den Buchenwald."),
        ("Le pain", "La pâte repose toute une nuit au frais, puis le boulanger la façonne et la met au four."),
        ("El puente", "El puente de piedra cruza el río desde hace tres siglos y une los dos barrios del pueblo."),
        ("Domains of magnets", "Walls between domains move in small steps; a coil around the bar hears each of them."),
        (
            "Verkauf von Rosen",
            "Die Stöcke stehen im Frühjahr in Töpfen auf dem Markt, die Sorten nach Farben getrennt.",
        ),
        ("A host of beetles", "They eat the leaves from the edge and leave the veins, on some nights a whole bush."),
        ("Eliminating noise", "A filter with two poles eliminates hum; errors of phase are removed by feedback."),
    ],
)
def test_short_texts_of_their_own_subject(title: str, body: str) -> None:
    assert page_fault(BEFORE, PageWords(title, body)).reason == "redirect"


@pytest.mark.parametrize(
    "text",
    [
        "Pay €5/month, e-mail us. We're-back soon",
        "エラー 404: お探しのページは見つかりません",
        "El servidor no está disponible/no existe",
        "recordings of a beadle",
        "",
    ],
)
def test_the_quick_look_finds_what_the_patterns_find(text: str) -> None:
    plain = _plain(text)
    found = _spoken_of(plain)
    for things in _signs().values():
        for thing in things:
            assert (thing in found) == (thing.pattern.search(plain) is not None), thing
