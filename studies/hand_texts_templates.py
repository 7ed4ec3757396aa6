"""Families of texts that share a frame and differ in what they say, for `hand_texts.py`.

None of the members is a copy of another: who took them for copies would delete different news, laws, recipes or
matches. Written by hand without sight of the rules of the audits.
"""

from __future__ import annotations

import random
from typing import NamedTuple


class Family(NamedTuple):
    """Frames, and what is put into their slots; the values of a slot are all different."""

    name: str
    frames: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]


def _values(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


TOWNS = _values(
    "Leeds|Porto|Graz|Lyon|Turku|Ghent|Bergen|Split|Cork|Gdansk|Bari|Aarhus|Brno|Seville|Tartu|Malmo|Basel|Varna"
)
PEOPLE = _values(
    "Anna Keller|Tom Reyes|Mira Novak|Paul Osei|Ines Duarte|Lars Holm|Judit Varga|Omar Said|Ella Byrne|Jan de Wit|"
    "Rosa Conti|Pavel Dvorak|Nora Lind|Hugo Blanc|Aisha Khan|Viktor Ivanov|Lea Simon|Denis Moreau"
)
NUMBERS = _values("12|17|23|31|38|44|52|59|66|71|78|83|95|104|118|127|133|149")
FIRMS = _values(
    "Norvik Steel|Alder Foods|Quanta Optics|Helm Shipping|Breva Textiles|Orsa Mining|Tidal Power|Lumen Glass|"
    "Kestrel Air|Domus Bricks|Pallas Drugs|Sable Motors|Rhea Software|Vanto Paper|Cobalt Bank|Mistral Rail|Ardent Toys"
)
WARES = _values(
    "cordless drill|desk lamp|rain jacket|coffee grinder|hiking boot|wall clock|office chair|garden hose|bread knife|"
    "camping stove|bath towel|bicycle pump|picture frame|electric kettle|sleeping bag|table fan|tool box"
)
FOODS = _values(
    "leeks|salmon|chickpeas|beetroot|chicken thighs|mushrooms|red lentils|courgettes|prawns|white cabbage|aubergines|"
    "cod|sweet potatoes|minced lamb|broad beans|pumpkin|tofu"
)
SPICES = _values(
    "cumin|dill|smoked paprika|thyme|ginger|tarragon|turmeric|mint|chilli|caraway|oregano|saffron|sage|cinnamon|"
    "basil|nutmeg|coriander"
)
CLUBS = _values(
    "Rovers|Athletic|Dynamo|United|Wanderers|Sporting|Harbour FC|Red Star|Albion|Olympia|Viktoria|Lions|Union|Phoenix|"
    "Borough|Racing|Mariners"
)
TERMS = _values(
    "osmosis|inflation|sonnet|isthmus|photosynthesis|mortgage|pendulum|monsoon|fugue|enzyme|tariff|glacier|metaphor|"
    "catalyst|delta|plankton|filibuster"
)
MEANINGS = _values(
    "the passage of a solvent through a membrane|a lasting rise of prices|a poem of fourteen lines|a narrow strip of "
    "land between two seas|the making of sugar with light|a loan secured by a house|a weight that swings from a pivot|"
    "a seasonal wind that brings rain|a piece in which voices enter one by one|a protein that speeds up a reaction|"
    "a tax on imports|a slow river of ice|a comparison without the word like|a substance that is not used up|the mouth "
    "of a river with many arms|small life that drifts in water|a speech that delays a vote"
)
DUTIES = _values(
    "keep the premises insured|return all documents|pay the deposit|allow inspections|repair the roof|disclose other "
    "contracts|train new staff|respect the opening hours|label all goods|report accidents|maintain the lifts|deliver "
    "monthly accounts|refrain from advertising|provide safe access|store records|appoint a deputy|clear the snow"
)
TOPICS = _values(
    "parking fees|the school roof|noise at night|the new archive|street lamps|the swimming pool|bus lane fines|tree "
    "felling|the youth club|flood barriers|library hours|the market square|cycle racks|waste collection|the town twin|"
    "playground safety|the choir's grant"
)
WEATHERS = _values(
    "thick fog|heavy snow|light drizzle|strong gales|bright sunshine|thunderstorms|freezing rain|a dry spell|hail "
    "showers|sea mist|scattered clouds|a heat wave|sleet|steady rain|black frost|a warm breeze|dust haze"
)

FAMILIES: tuple[Family, ...] = (
    Family(
        "agency news",
        (
            "{town}, Tuesday (Wire) - {firm} said on Tuesday it would cut {number} jobs at its plant in {town}. Shares "
            "of the company fell in early trading. A spokesman declined to give further details. Unions called "
            "for talks.",
            "{town} (Wire) - A court in {town} has ordered {firm} to pay {number} million euros to former "
            "customers. The company said that it would study the ruling before deciding whether to appeal. "
            "(Reporting by our staff)",
            "({town}) {person} has been named chief executive of {firm}, the company announced. The appointment takes "
            "effect at the beginning of next month. Terms were not disclosed.",
        ),
        {"town": TOWNS, "firm": FIRMS, "number": NUMBERS, "person": PEOPLE},
    ),
    Family(
        "legal clauses",
        (
            "The Contractor shall {duty} within {number} days of written notice by the Client. Should the "
            "Contractor fail to do so, the Client may terminate this Agreement without prejudice to any other remedy.",
            "For the purposes of this Section, the obligation to {duty} shall survive termination of this "
            "Agreement for a period of {number} months and shall be governed by the law of the seat of {firm}.",
        ),
        {"duty": DUTIES, "number": NUMBERS, "firm": FIRMS},
    ),
    Family(
        "licence headers",
        (
            "Copyright (c) {person}. Permission to use, copy and distribute this file for any purpose is granted "
            "provided that this notice appears in all copies. The software is provided as is, without warranty "
            "of any kind. This module computes {thing} and prints a table of {number} rows.",
            "This file is part of {firm} Tools, free software under the terms of the public licence, version 3, "
            "in the hope that it will be useful but without any warranty. See the licence for details. It reads "
            "{thing} from a stream.",
        ),
        {
            "person": PEOPLE, "firm": FIRMS, "number": NUMBERS,
            "thing": _values(
                "prime factors|moon phases|tide levels|chess openings|postal codes|loan rates|star charts|word counts|"
                "shoe sizes|bus routes|leap years|gear ratios|sound spectra|crop yields|vote shares|tax "
                "bands|DNA motifs"
            ),
        },
    ),
    Family(
        "multiple choice",
        (
            "Which of the following best describes {term}? A) {meaning} B) a kind of musical instrument C) none of the "
            "above D) all of the above. Choose one answer and explain your choice in a sentence.",
            "Question {number}. Read the text about {town} and tick the right answer. The author of the text "
            "thinks that {weather} is (a) rare (b) common (c) dangerous (d) not mentioned.",
        ),
        {"term": TERMS, "meaning": MEANINGS, "number": NUMBERS, "town": TOWNS, "weather": WEATHERS},
    ),
    Family(
        "definitions",
        (
            "{term} (noun): {meaning}. Example: we learnt about {term} at school. See also the list of related "
            "words at the end of this chapter.",
            "What is {term}? In simple words, {term} is {meaning}. Students often mix it up with other ideas, so "
            "read the definition twice and learn it by heart.",
        ),
        {"term": TERMS, "meaning": MEANINGS},
    ),
    Family(
        "weather",
        (
            "Forecast for {town}: {weather} in the morning, clearing later. Highest temperature {number} degrees "
            "Fahrenheit. Wind from the west, light to moderate. Outlook for tomorrow: little change.",
            "The weather office has issued a warning of {weather} for {town} and the surrounding area. It is "
            "valid until midnight. Drivers should allow more time for their journeys.",
        ),
        {"town": TOWNS, "weather": WEATHERS, "number": NUMBERS},
    ),
    Family(
        "product pages",
        (
            "{firm} {ware}. Add to basket. Price: {number}.99 euros including tax. In stock, delivered in two to three "
            "working days. Free returns within 30 days. Customers who bought this item also bought gift wrapping.",
            "Product details: {ware} by {firm}. Item weight {number} ounces. Two-year guarantee. Rated four out "
            "of five stars. Be the first to ask a question about this product.",
        ),
        {"firm": FIRMS, "ware": WARES, "number": NUMBERS},
    ),
    Family(
        "recipes",
        (
            "Heat the oil in a large pan. Add the chopped {food} and fry for five minutes until soft. Stir in "
            "the {spice} and season with salt and pepper. Simmer for {number} minutes and serve with rice.",
            "Preheat the oven. Put the {food} in a baking dish, sprinkle with {spice} and drizzle with olive "
            "oil. Bake for {number} minutes, turning once, until golden. Serves four.",
            "For the soup, bring a litre of stock to the boil, add the {food}, cover, and cook gently for "
            "{number} minutes. Blend until smooth, add the {spice} and a little cream, and serve hot.",
        ),
        {"food": FOODS, "spice": SPICES, "number": NUMBERS},
    ),
    Family(
        "sports",
        (
            "{club} beat the visitors from {town} on Saturday thanks to a late goal by {person} in minute "
            "{number}. The home side had most of the ball in the first half but failed to score. The coach "
            "praised his team.",
            "{person} of {club} will miss the rest of the season with a knee injury. The player was carried off in the "
            "match at {town} and will be operated on this week, the club said.",
        ),
        {"club": CLUBS, "town": TOWNS, "person": PEOPLE, "number": NUMBERS},
    ),
    Family(
        "minutes",
        (
            "Present: the chair, the clerk and {number} members. Apologies were received from {person}. The "
            "minutes of the last meeting were approved. The council discussed {topic} and deferred the matter. "
            "There was no other business.",
            "Item {number}: {topic}. {person} reported. Questions were asked and answered. It was resolved to note the "
            "report and to return to the matter at the next meeting. Proposed, seconded and carried.",
        ),
        {"number": NUMBERS, "person": PEOPLE, "topic": TOPICS},
    ),
    Family(
        "abstracts",
        (
            "Background: little is known about {food} in the diet of patients in {town}. Methods: we asked {number} "
            "patients. Results: intake was associated with outcome. Conclusions: more research is needed.",
            "This paper presents a new approach to {topic}. We evaluate it on data from {town} and compare it with two "
            "baselines. The results show that it is better by {number} per cent. We discuss limits and future work.",
        ),
        {"food": FOODS, "town": TOWNS, "number": NUMBERS, "topic": TOPICS},
    ),
    Family(
        "obituaries",
        (
            "{person} of {town} passed away peacefully aged 8{digit}, surrounded by family. A keen follower of {club}, "
            "always remembered for a love of {food}. The funeral will be private. No flowers please.",
            "It is with great sadness that {firm} announces the death of {person}, who led our office in {town} for "
            "{number} months. Our thoughts are with the family. A book of condolence is open in the lobby.",
        ),
        {
            "person": PEOPLE, "town": TOWNS, "club": CLUBS, "food": FOODS, "firm": FIRMS, "number": NUMBERS,
            "digit": tuple("01234567890123456"),
        },
    ),
)  # fmt: skip


def members(family: Family, frame: int, size: int, seed: int) -> list[str]:
    """Texts of one frame; each slot has another value in each text, only those of one digit may repeat."""
    draw = random.Random(f"{family.name} {frame} {seed}")
    order = {slot: draw.sample(range(len(values)), len(values)) for slot, values in family.slots.items()}
    if "term" in order and "meaning" in order:
        order["meaning"] = order["term"]
    return [
        family.frames[frame].format(**{slot: family.slots[slot][places[at]] for slot, places in order.items()})
        for at in range(size)
    ]
