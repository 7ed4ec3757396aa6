"""Search queries and what other people would type for the same need, for `hand_texts.py`.

Written by hand, one by one, without sight of the rules of the leakage audit; no generator made any of them.
"""

from __future__ import annotations

#: A query, and two people's ways of asking the same.
PARAPHRASES: tuple[tuple[str, str, str], ...] = (
    (
        "how to descale a kettle with vinegar",
        "getting limescale out of a kettle using vinegar",
        "can I clean chalk from my electric kettle with white vinegar?",
    ),
    ("best time of year to prune apple trees", "when should you cut back an apple tree", "apple pruning season"),
    ("symptoms of iron deficiency in adults", "how do I know if I have too little iron", "signs of low iron grown ups"),
    (
        "cheapest way to send a parcel to australia",
        "low cost shipping of a package to Australia",
        "how can I post a box down under without paying much",
    ),
    (
        "why do cats knead blankets",
        "reason my cat pushes its paws into soft cloth",
        "cat making biscuits on bedding meaning",
    ),
    (
        "salary of a primary school teacher in ireland",
        "what do primary teachers earn in Ireland",
        "irish elementary school teaching pay",
    ),
    (
        "remove red wine stain from carpet",
        "spilled merlot on the rug how do I get it out",
        "carpet cleaning after a red wine accident",
    ),
    ("population of iceland 2020", "how many people lived in Iceland in 2020", "number of Icelanders in the year 2020"),
    (
        "how long does a passport renewal take",
        "passport renewal waiting time",
        "time needed to get a new passport when the old one expires",
    ),
    (
        "difference between baking soda and baking powder",
        "are baking powder and bicarbonate of soda the same thing",
        "baking soda vs powder",
    ),
    (
        "side effects of stopping smoking suddenly",
        "what happens to your body when you quit cigarettes cold turkey",
        "nicotine withdrawal after giving up at once",
    ),
    ("how to fix a dripping tap", "leaky faucet repair", "my kitchen tap won't stop dripping, what do I do"),
    ("who invented the zip fastener", "inventor of the zipper", "name of the person that came up with zips on clothes"),
    (
        "effects of caffeine on sleep quality",
        "does coffee make you sleep worse",
        "influence of drinking coffee on how well one rests at night",
    ),
    (
        "tallest mountain in south america",
        "which peak is the highest in the Andes",
        "south american mountain with the greatest elevation",
    ),
    ("how to tie a bow tie", "bow tie knot instructions", "steps for doing up a self-tie bow"),
    (
        "treatment for plantar fasciitis at home",
        "what can I do myself about heel pain from plantar fasciitis",
        "home remedies sore sole of foot fasciitis",
    ),
    (
        "history of the suez canal",
        "how the Suez Canal came to be built",
        "past of the waterway between the Mediterranean and the Red Sea",
    ),
    ("can dogs eat blueberries", "are blueberries safe for a dog", "is it ok to give my puppy blueberries"),
    ("average rent in lisbon", "what does it cost to rent a flat in Lisbon", "lisbon apartment monthly price typical"),
    (
        "how to reset an iphone without password",
        "wipe iPhone when you forgot the code",
        "factory reset apple phone passcode unknown",
    ),
    (
        "causes of the french revolution",
        "why did the French rise against their king in 1789",
        "what led to revolution in France",
    ),
    (
        "nearest planet to the sun",
        "which planet is closest to our star",
        "first planet of the solar system counted from the sun",
    ),
    (
        "convert fahrenheit to celsius formula",
        "how do you calculate celsius from fahrenheit",
        "equation degrees F into degrees C",
    ),
    (
        "how do vaccines work",
        "mechanism by which vaccination protects against disease",
        "what does a jab do inside the body to make you immune",
    ),
    (
        "what to wear to a job interview",
        "appropriate clothes for an interview",
        "dress code when meeting a possible employer",
    ),
    ("plants that grow in full shade", "shade loving garden plants", "what can I plant where the sun never shines"),
    (
        "flight delay compensation rules europe",
        "am I owed money if my EU flight is late",
        "passenger rights late departure european union",
    ),
    (
        "how much water should a person drink per day",
        "recommended daily water intake",
        "litres of water one ought to drink every day",
    ),
    (
        "train from vienna to budapest duration",
        "how many hours by rail between Vienna and Budapest",
        "vienna budapest train journey time",
    ),
    ("why is the sky blue", "what makes the sky look blue during the day", "reason for the blue colour of the heavens"),
    (
        "learning to swim as an adult",
        "swimming lessons for grown-ups who never learned",
        "is 40 too old to start swimming",
    ),
    (
        "interest rate on student loans 2019",
        "how much interest did student debt carry in 2019",
        "2019 student borrowing rates",
    ),
    (
        "how to get rid of ants in the kitchen",
        "ants keep coming into my kitchen, help",
        "kill ant infestation cooking area",
    ),
)

#: A query, the language, and what somebody who speaks it would type.
TRANSLATIONS: tuple[tuple[str, str, str], ...] = (
    ("how to remove rust from iron", "de", "wie entfernt man Rost von Eisen"),
    ("opening hours of the british museum", "de", "Öffnungszeiten British Museum"),
    ("best books for learning chess", "de", "gute Bücher zum Schachlernen"),
    ("is it going to rain tomorrow in hamburg", "de", "regnet es morgen in Hamburg"),
    ("how to make yoghurt at home", "fr", "comment faire des yaourts maison"),
    ("cheap hotels near the louvre", "fr", "hôtels pas chers à côté du Louvre"),
    ("how long do bees live", "fr", "durée de vie des abeilles"),
    ("child refuses to sleep alone", "fr", "mon enfant ne veut pas dormir seul"),
    ("recipe for lentil soup", "es", "receta de sopa de lentejas"),
    ("how to file taxes as a freelancer", "es", "cómo declarar impuestos siendo autónomo"),
    ("distance between the earth and the moon", "es", "a qué distancia está la luna de la tierra"),
    ("used electric cars for sale", "es", "coches eléctricos de segunda mano en venta"),
    ("what to see in florence in one day", "it", "cosa vedere a Firenze in un giorno"),
    ("how to treat a wasp sting", "it", "rimedi per puntura di vespa"),
    ("learn to play the guitar alone", "it", "imparare a suonare la chitarra da autodidatta"),
    ("weather in the canary islands in november", "nl", "weer op de Canarische Eilanden in november"),
    ("how to paint a wooden door", "nl", "houten deur schilderen hoe doe je dat"),
    ("benefits of walking every day", "pt", "benefícios de caminhar todos os dias"),
    ("how to recover deleted photos", "pt", "como recuperar fotos apagadas"),
    ("causes of high blood pressure", "pl", "przyczyny wysokiego ciśnienia"),
    ("why do leaves turn yellow in autumn", "pl", "dlaczego liście żółkną jesienią"),
    ("who wrote war and peace", "ru", "кто написал войну и мир"),
    ("how to grow tomatoes on a balcony", "ru", "как вырастить помидоры на балконе"),
    ("how to learn japanese characters", "ja", "漢字の覚え方"),
    ("symptoms of diabetes", "zh", "糖尿病有什么症状"),
    ("how to cook rice without a rice cooker", "tr", "pirinç pilavı tencerede nasıl yapılır"),
    ("history of coffee", "ar", "تاريخ القهوة"),
)  # fmt: skip

#: A query, how badly it is spelled (1 a slip, 2 several, 3 barely readable), and what was typed, heard or scanned.
SPELLINGS: tuple[tuple[str, int, str], ...] = (
    ("restaurants near central station amsterdam", 1, "restaurants near central staton amsterdam"),
    ("how to change a bicycle tyre", 1, "how to chnage a bicycle tyre"),
    ("definition of entropy in thermodynamics", 1, "defintion of entropy in thermodynamics"),
    ("wedding speech examples for best man", 1, "wedding speach examples for best man"),
    ("download free pdf reader", 1, "downlaod free pdf reader"),
    ("early signs of pregnancy", 1, "early signs of pregnency"),
    ("currency of morocco", 1, "currancy of morocco"),
    ("famous paintings by vermeer", 1, "famous paintings by vermer"),
    ("how to knit a scarf for beginners", 2, "how too nit a scarf for beginers"),
    ("electrician apprenticeship requirements", 2, "electrision aprenticeship requirments"),
    ("what is a mortgage deposit", 2, "wat is a morgage deposite"),
    ("pneumonia recovery time", 2, "newmonia recovry time"),
    ("vegetarian lasagne with spinach", 2, "vegitarian lasagna wiht spinich"),
    ("bruce springsteen concert tickets", 2, "bruce springstein consert tikets"),
    ("rhythm exercises for drummers", 2, "rythm excercises for drumers"),
    ("schedule of the olympic games", 2, "shedule of teh olimpic gmaes"),
    ("camera lens for night photography", 2, "carnera 1ens for night photograpby"),
    ("modern slavery act summary", 2, "modem slavery act summaiy"),
    ("clinical trials of malaria vaccine", 2, "clinica1 tria1s of ma1aria vaccinc"),
    ("psychology of colour in advertising", 3, "sykologie off culler in advertizeing"),
    ("schizophrenia treatment guidelines", 3, "skitsofrenya treetment guidlines"),
    ("how to cite a website in an essay", 3, "hwo tpo cit ea webstie in na esasy"),
    ("cheap flights from dublin to rome", 3, "chep flihgts form dubln ot roem"),
    ("restoration of antique furniture", 3, "rcstorat1on ot antlque fumiture"),
    ("hydrogen fuel cells for buses", 3, "hydr0gcn fuc1 ce11s f0r buscs"),
    ("knee surgery rehabilitation exercises", 3, "nee sergery reabilitashun exersizes"),
    ("parliamentary elections in norway", 3, "parlamentry elektions innorway"),
)
