"""Short documents, and what another author would write with the same content, for `hand_texts.py`.

Written by hand, one by one, without sight of the rules of the leakage audit; no generator made any of them.
"""

from __future__ import annotations

#: A document, and another author's version of it.
DOCUMENTS: tuple[tuple[str, str], ...] = (
    (
        "The old harbour bridge was closed on Monday after inspectors discovered cracks in two of its main girders. "
        "Engineers expect the repairs to last until October. Buses will take a detour through the northern suburbs.",
        "Cracked girders have forced the city to shut the bridge at the old port. It may be autumn before the damage, "
        "which came to light in an inspection, is mended; meanwhile bus passengers are taken round by the north.",
    ),
    (
        "Honeybees tell each other where food is by dancing on the comb. The angle of the dance shows the direction "
        "relative to the sun, and its length shows the distance.",
        "A bee that has found flowers performs a waggle run in the hive. Sisters read from it how far they must fly, "
        "by how long it lasts, and which way, by how it is tilted against the position of the sun.",
    ),
    (
        "Sourdough bread rises because of wild yeast and bacteria that live in the starter. The acids they make give "
        "the loaf its taste and keep it fresh for longer.",
        "No bought yeast goes into a sourdough. Microbes in the leaven produce the gas that lifts the dough, and their "
        "sourness both flavours the bread and slows its going stale.",
    ),
    (
        "The company reported a loss of 12 million euros in the second quarter, its first in nine years. Higher energy "
        "prices and a strike at its largest plant were to blame, the chief executive said.",
        "For the first time in nearly a decade the firm is in the red: it lost twelve million euros between April and "
        "June. Its head pointed to costlier power and the walkout at the main factory.",
    ),
    (
        "Patients who received the new drug slept an hour longer each night than those who were given a placebo. "
        "Headaches were the most common side effect. The trial ran for six weeks and had 240 participants.",
        "In a six-week study with 240 people the tested medicine added about sixty minutes to a night's rest compared "
        "with dummy pills. Some of those treated complained of a sore head, more often than of anything else.",
    ),
    (
        "Do not store tomatoes in the refrigerator. Cold stops them from ripening and destroys the substances that "
        "give them their smell.",
        "A fridge is the wrong place for a tomato, since low temperatures ruin its aroma and it will not get any "
        "riper.",
    ),
    (
        "The museum's new wing houses a collection of Roman glass that a local family gave to the city. Admission is "
        "free on the first Sunday of the month.",
        "Glassware from Roman times, donated by citizens of the town, can now be seen in an extension of the museum. "
        "Every first Sunday nobody has to pay.",
    ),
    (
        "A hash table stores each key in a bucket that is computed from the key itself. Looking a key up takes "
        "constant time on average, but in the worst case all keys fall into the same bucket.",
        "Where an entry goes in a hash map follows from a function of its key. That makes access fast whatever the "
        "size, unless everything collides in a single slot, when a search has to walk through all entries.",
    ),
    (
        "Glaciers in the region have lost a third of their ice since 1980. Villages in the valleys depend on melt "
        "water in late summer and will have to build reservoirs.",
        "Since the beginning of the eighties one third of the local glacier ice has gone. People further down, whose "
        "fields are watered by it in August and September, need to think about storing water.",
    ),
    (
        "The violinist began to play at the age of four and gave her first concert with an orchestra when she was "
        "eleven. She is now professor in Helsinki.",
        "Today she teaches at the academy in Helsinki. Her career had an early start: violin lessons from four, a "
        "debut as a soloist at eleven.",
    ),
    (
        "To bleed a radiator, turn off the heating and open the valve with the key until water comes out instead of "
        "air. Hold a cloth underneath.",
        "Trapped air makes radiators gurgle. With the heating switched off, put a rag under the valve, loosen it with "
        "the little key and shut it again as soon as the hissing gives way to water.",
    ),
    (
        "The treaty of 1648 ended thirty years of war in central Europe. It confirmed the independence of the Dutch "
        "provinces and gave German princes the right to choose their alliances.",
        "After three decades of fighting, peace was made in the middle of the seventeenth century. The Netherlands "
        "were recognised as a state of their own, and rulers in Germany could from now on ally with whom they liked.",
    ),
    (
        "Electric buses cost twice as much as diesel ones but need less maintenance. The city expects to recover the "
        "difference within eight years.",
        "Although a battery bus is double the price of a conventional one, fewer repairs should pay back the extra "
        "money in under a decade, the municipality reckons.",
    ),
    (
        "Octopuses have three hearts, two of which pump blood through the gills. The third one stops beating when the "
        "animal swims, so that it prefers to crawl.",
        "Swimming tires an octopus: the heart that serves its body pauses meanwhile. Two more hearts look after the "
        "gills alone.",
    ),
    (
        "We investigate the propagation of very low frequency radio waves below the ionosphere at night. The measured "
        "attenuation agrees with a model in which the lower boundary is a sharp layer.",
        "Night-time observations of VLF signals are compared with theory. If the bottom of the ionosphere is taken as "
        "an abrupt edge, the computed loss over distance fits what was recorded.",
    ),
    (
        "An algorithm is described that finds the shortest path in a network by examining nodes in the order of their "
        "distance from the source. Each node is examined once.",
        "The procedure given here visits the vertices of a graph one after another, the nearest to the start first, "
        "and never returns to one. When it reaches the target, the cheapest route is known.",
    ),
    (
        "The orchestra has cancelled its tour of Asia because of rising travel costs. Tickets will be refunded within "
        "30 days.",
        "Concertgoers in Asia get their money back within a month: flights have become too dear, and the musicians "
        "are staying at home.",
    ),
    (
        "Compost needs air and moisture. Turn the heap every few weeks and water it in dry weather; never add cooked "
        "food, which attracts rats.",
        "Keep your compost damp and fork it over from time to time so that it can breathe. Leftovers from the table "
        "do not belong on it unless you want vermin.",
    ),
    (
        "The parliament approved the budget by 61 votes to 58. The opposition criticised the cuts to universities, "
        "which come into force in January.",
        "With a majority of only three the deputies passed next year's spending plan. From New Year there is less "
        "money for higher education, to the anger of the parties that voted against.",
    ),
    (
        "People who speak two languages often switch between them in one sentence. Linguists have shown that these "
        "switches follow rules of grammar and are no sign of confusion.",
        "Mixing tongues while talking is normal among bilinguals. It does not mean that they are muddled: research "
        "finds that where a speaker changes over is governed by grammar.",
    ),
    (
        "A fire destroyed a furniture warehouse on the edge of town last night. Nobody was hurt. The police suspect "
        "an electrical fault.",
        "Faulty wiring may have caused the blaze in which a store full of furniture burnt down during the night in "
        "the outskirts. There were no casualties.",
    ),
    (
        "The library lends musical instruments as well as books. Guitars and keyboards can be borrowed for four weeks "
        "with an ordinary card.",
        "With your normal reader's ticket you may now take home a guitar or a keyboard for a month, beside anything "
        "to read.",
    ),
    (
        "Penguins huddle to keep warm in the Antarctic winter. Birds on the outside slowly move inwards, so that each "
        "one spends some time in the middle.",
        "To survive the polar cold, penguins stand closely packed. The crowd keeps shuffling: whoever freezes at the "
        "rim gets a turn at the centre.",
    ),
    (
        "A lens made of two kinds of glass brings red and blue light to the same focus. Before its invention, "
        "astronomers built very long telescopes to reduce the coloured fringes.",
        "Combining flint and crown glass cancels the colour error of a single lens. Until somebody thought of that, "
        "the only way to weaken the rainbow edges in a telescope was to make it enormously long.",
    ),
    (
        "The hotel is a five-minute walk from the station and has 42 rooms, most of them with a view of the lake. "
        "Breakfast is served until eleven.",
        "Forty-two rooms, the majority facing the water, breakfast for late risers (till 11), and the trains just "
        "round the corner: that is what this place offers.",
    ),
    (
        "Teenagers who used their telephones in bed were more tired at school, the survey found. Parents "
        "underestimated how long the devices were used after midnight.",
        "Pupils taking their mobiles to bed pay for it in class the next day, and mothers and fathers have little idea "
        "how late it gets, according to a poll.",
    ),
    (
        "Before you sell a car, remove your personal data from its navigation system. The addresses and telephone "
        "numbers that are stored there are not deleted with the key.",
        "Second-hand cars often still know where their last owner lives. Handing over the key erases nothing, so clear "
        "contacts and destinations yourself ahead of the sale.",
    ),
    (
        "The painter worked on the fresco for eleven years. He left it unfinished when he quarrelled with the abbot "
        "about his pay.",
        "A dispute over money with the head of the abbey is why the wall painting, after more than ten years of "
        "labour, was never completed.",
    ),
    (
        "Sea levels along this coast rose by nine centimetres between 1990 and 2015. Dykes that were built in the "
        "sixties are being raised by half a metre.",
        "Within 25 years the water here has come up by 9 cm. The answer is to make the sixty-year-old embankments "
        "fifty centimetres higher.",
    ),
    (
        "The method divides the matrix into blocks that fit into fast memory. On the machine we used, this made the "
        "multiplication four times faster than the usual order of loops.",
        "By working on tiles small enough for the cache, products of matrices were obtained in a quarter of the time "
        "that the textbook loop needs on our computer.",
    ),
    (
        "Swallows leave for Africa in September and return to the same barn in April. Ringing has shown that they "
        "cross the Sahara in about a week.",
        "A swallow that nests in your stable is likely the one of last year. In between it wintered in Africa; we know "
        "from ringed birds that it takes some seven days over the desert.",
    ),
)
