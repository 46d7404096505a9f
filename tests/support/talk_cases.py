"""Made talks in German and French: steps, what is said, and which sentence is about which step.

A line of a talk begins with the number of the step that it is about, from 1, or with a dash. One step of each talk is
never talked about.
"""

from typing import NamedTuple


class Talk(NamedTuple):
    """Steps, sentences, and for each sentence its step, −1 for none."""

    steps: tuple[str, ...]
    said: tuple[str, ...]
    about: tuple[int, ...]

    def sentences_of(self, step):
        """The numbers of the sentences about a step."""
        return [k for k, mine in enumerate(self.about) if mine == step]


def talk(steps, lines):
    """A talk of texts with an entry to a line."""
    marks, said = zip(*(line.split(" ", 1) for line in lines.strip().splitlines()), strict=True)
    about = tuple(-1 if mark == "-" else int(mark) - 1 for mark in marks)
    return Talk(tuple(steps.strip().splitlines()), said, about)


BREAD = talk(
    """
Mehl, Wasser, Salz und Hefe vermischen
Den Teig kneten, bis er glatt ist
Den Teig zugedeckt gehen lassen
Ein Rundholz einölen
Den Laib formen
Den Ofen vorheizen
Das Brot einschneiden und backen
Das Brot auf einem Gitter abkühlen lassen
""",
    """
- Hallo zusammen, schön, dass ihr wieder dabei seid.
- Heute gibt es etwas, das sich meine Schwester schon lange gewünscht hat.
- Ihr braucht dafür wirklich kein teures Gerät.
1 Also, ich gebe das Mehl in eine große Schüssel, dazu Salz und die Hefe.
1 Dann schütte ich das lauwarme Wasser dazu und vermische alles mit einem Löffel.
- Bei mir klingelt gerade das Telefon, das lassen wir einfach.
2 Jetzt wird geknetet, und zwar ordentlich, mindestens zehn Minuten.
2 Man merkt beim Kneten, dass der Teig langsam glatter wird.
- Mein Opa hat das früher jeden Samstag gemacht.
- Der war übrigens Postbote, das nur nebenbei.
3 Deckt den Teig mit einem Tuch ab und lasst ihn zwei Stunden gehen.
- In der Zeit könnt ihr spazieren gehen oder die Zeitung lesen.
- Ich war kurz einkaufen.
5 So, und nun forme ich daraus einen runden Laib.
5 Beim Formen die Hände ruhig ein bisschen bemehlen.
- Das sieht doch schon ganz ordentlich aus.
6 Den Backofen heize ich in der Zwischenzeit auf zweihundertfünfzig Grad vor.
- Bitte denkt daran, wenn ihr kleine Kinder habt.
7 Mit einem scharfen Messer schneide ich das Brot oben ein.
7 Und dann backt es ungefähr vierzig Minuten.
- Es duftet in der ganzen Wohnung.
8 Wenn es fertig ist, kommt das Brot auf ein Gitter, damit es in Ruhe abkühlt.
- Ich weiß, man möchte sofort hineinbeißen.
- Macht es gut und bis zum nächsten Mal.
""",
)

TIRE = talk(
    """
Das Rad ausbauen
Den Mantel mit Reifenhebern abziehen
Den Schlauch herausnehmen und aufpumpen
Das Loch suchen
Die Stelle aufrauen
Den Flicken aufkleben
Die Kette ölen
Den Mantel nach Scherben absuchen
Schlauch und Mantel wieder einsetzen
Den Reifen aufpumpen
""",
    """
- Moin und willkommen in meiner kleinen Werkstatt.
- Gestern bin ich auf dem Heimweg über irgendetwas drübergefahren.
- Es hat ordentlich gezischt, und dann war die Luft raus.
- Meine Nachbarin wollte schon ein neues kaufen.
1 Zuerst stellen wir das Fahrrad auf den Kopf und bauen das Hinterrad aus.
1 Dazu löst man einfach die beiden Muttern an der Achse.
- Die rollen gern weg, also gut aufpassen.
2 Jetzt kommen die Reifenheber unter den Mantel, und ich ziehe ihn ringsherum ab.
- Das geht bei manchen Felgen leider richtig schwer.
- Kaffee habe ich mir vorhin schon geholt.
3 Den Schlauch nehme ich jetzt ganz heraus und pumpe ihn kräftig auf.
4 Nun suchen wir das Loch, am besten in einem Eimer Wasser.
4 Wo es blubbert, da ist das Loch.
- Da haben wir ja den Übeltäter.
- Mein Sohn findet das immer besonders spannend.
5 Mit dem Schleifpapier raue ich die Stelle ein wenig auf.
- Nicht übertreiben, es ist schließlich nur dünnes Gummi.
6 Danach etwas Kleber darauf, kurz warten, und dann den Flicken fest andrücken.
- Ein paar Minuten sollte man sich dafür Zeit nehmen.
8 Bevor wir weitermachen, taste ich den Mantel innen nach Scherben und Dornen ab.
- Tatsächlich, da steckt noch ein kleiner Splitter.
9 So, jetzt kommt der Schlauch wieder hinein und der Mantel zurück auf die Felge.
- Das letzte Stück ist immer das schwierigste.
10 Zum Schluss pumpe ich den Reifen auf, bis er schön hart ist.
- Wie ihr seht, hat das keine halbe Stunde gedauert.
- Lasst mir gern einen Kommentar da.
""",
)

SHELF = talk(
    """
Die Bohrlöcher anzeichnen
Nach Stromleitungen suchen
Löcher bohren
Dübel einsetzen
Die Wand neu streichen
Die Halterungen anschrauben
Das Brett auflegen und ausrichten
Staub wegsaugen
""",
    """
- Servus, hier ist wieder der Toni.
- Ihr kennt das, die Bücher stapeln sich und man weiß nicht wohin.
- Deswegen kommt heute endlich dieses Holzding an die Wand.
1 Ich halte die Halterung an und zeichne mit dem Bleistift an, wo die Löcher hinkommen.
1 Mit der Wasserwaage prüfe ich, ob die Striche auf einer Höhe sind.
- Da habe ich mich früher oft auf mein Augenmaß verlassen.
- Das ging meistens schief, im wahrsten Sinne.
2 Ganz wichtig, mit so einem Suchgerät schaue ich, ob hier eine Leitung verläuft.
- Ein Freund von mir hat einmal den ganzen Block verdunkelt.
3 Jetzt nehme ich die Bohrmaschine und bohre die vier Löcher.
3 Erst langsam anfangen, dann läuft der Bohrer nicht weg.
- Die Nachbarn freuen sich sicher.
- Es ist Samstag um elf, das ist erlaubt.
4 In jedes Loch kommt ein Dübel, den klopfe ich mit dem Hammer bündig hinein.
- Falls einer wackelt, hilft ein Streichholz.
6 Dann schraube ich die beiden Halterungen fest.
- Der Akkuschrauber ist übrigens ein Geburtstagsgeschenk.
7 Nun lege ich das Brett darauf und richte es aus, bis die Blase in der Mitte steht.
- Fertig ist die Laube.
8 Zum Schluss sauge ich noch den ganzen Staub vom Boden weg.
- Jetzt dürfen endlich die Bücher einziehen.
- Servus und bis bald.
""",
)

COFFEE = talk(
    """
Den Wassertank leeren
Entkalker auflösen
Die Lösung durchlaufen lassen
Einwirken lassen
Mit klarem Wasser nachspülen
Die Brühgruppe reinigen
Bohnen nachfüllen
Einen Probekaffee wegschütten
""",
    """
- Guten Tag, mein Name ist Petra, und ich trinke entschieden zu viel davon.
- Seit drei Wochen blinkt bei mir ein rotes Lämpchen.
- Ich habe das natürlich ignoriert, wie man das so macht.
1 Als Erstes nehme ich den Tank hinten heraus und leere ihn ganz aus.
- Vorsicht, der tropft gern auf die Socken.
2 In einem Liter Wasser löse ich jetzt eine Tablette vom Entkalker auf.
2 Bitte warten, bis sie sich vollständig aufgelöst hat.
- Mein Mann schwört auf Essig, aber der greift die Dichtungen an.
3 Die Lösung gieße ich hinein, drücke auf Start und lasse die Hälfte durchlaufen.
- Das klingt ein wenig wie ein altes Moped.
- Der Hund ist schon geflüchtet.
4 Dann schalte ich sie aus, und das Ganze darf zwanzig Minuten einwirken.
- In der Zwischenzeit kann man wunderbar die Post sortieren.
5 Danach fülle ich frisches, klares Wasser ein und spüle zweimal gründlich nach.
- Man sieht richtig, was da alles herauskommt.
6 Die Brühgruppe kann man hier seitlich herausziehen und unter dem Hahn reinigen.
6 Kein Spülmittel, nur warmes Wasser und ein weicher Pinsel.
- So sauber war das Ding zuletzt im Laden.
8 Den ersten Kaffee schütte ich trotzdem weg, der schmeckt noch komisch.
- Aber der zweite, der ist ein Traum.
- Danke fürs Zuschauen und einen schönen Nachmittag.
""",
)

CREPES = talk(
    """
Tamiser la farine
Casser les œufs
Verser le lait petit à petit
Ajouter une pincée de sel
Laisser reposer la pâte
Beurrer la poêle
Faire cuire la crêpe
Retourner la crêpe
Préparer une salade de fruits
Garnir de confiture
""",
    """
- Bonjour à tous et bienvenue dans ma petite cuisine.
- Aujourd'hui il pleut, c'est donc le moment idéal.
- Ma grand-mère venait de Bretagne, elle m'a tout appris.
1 Alors, je commence par tamiser la farine dans un grand saladier.
- Comme ça on évite les grumeaux, c'est tout bête.
2 Je fais un puits au milieu et j'y casse trois œufs.
- Attention aux coquilles, ça m'arrive toujours.
3 Ensuite je verse le lait, tout doucement, en fouettant sans arrêt.
3 On en verse encore un peu, jusqu'à ce que ce soit bien fluide.
- Mon fils vient de rentrer de l'école, dis bonjour, Hugo.
4 J'ajoute maintenant une petite pincée de sel.
- Certains mettent du rhum, moi je n'en mets pas.
5 Il faut laisser la pâte se reposer une bonne heure au frais.
- Pendant ce temps, moi, je fais un peu de rangement.
- La radio annonce des orages pour ce soir.
6 La poêle est bien chaude, je la beurre avec un papier absorbant.
7 Je mets une louche de pâte et je laisse cuire une minute.
- Le premier essai est toujours raté, ne vous inquiétez pas.
8 Quand les bords se décollent, hop, on retourne la crêpe d'un coup sec.
- Elle est tombée par terre une fois, le chien était ravi.
10 Pour finir je la garnis avec de la confiture d'abricots.
- Régalez-vous, et à la semaine prochaine.
""",
)

WHEEL = talk(
    """
Mettre le triangle de signalisation
Serrer le frein à main
Desserrer les écrous
Lever la voiture avec le cric
Enlever la roue crevée
Monter la roue de secours
Laver le pare-brise
Resserrer les écrous en croix
Vérifier la pression
""",
    """
- Salut les amis, on se retrouve au bord de la départementale.
- Ça devait arriver, j'ai entendu un grand bruit tout à l'heure.
- Heureusement, il ne fait pas encore nuit.
1 Avant toute chose, je place le triangle à trente mètres derrière.
- Et puis j'enfile mon gilet, même si la couleur ne me va pas.
2 Je vérifie que le frein à main est bien serré.
- Ma sœur a oublié une fois, je ne vous raconte pas.
3 Avec la clé, je desserre un peu chaque écrou, sans les retirer.
3 Si ça résiste, on peut appuyer avec le pied.
- C'est une bonne séance de sport, finalement.
4 Maintenant je glisse le cric dessous et je lève doucement la voiture.
- Regardez, elle monte comme une plume.
5 J'enlève complètement les écrous et je retire la roue crevée.
- Elle est plus lourde qu'on ne croit.
- Voilà le coupable, un énorme clou.
6 On prend la roue de secours dans le coffre et on la monte à la place.
- Il y a un camion qui passe, attendez deux secondes.
8 Une fois la voiture redescendue, je resserre les écrous, toujours en croix.
- J'ai les mains toutes noires, mais ce n'est pas grave.
9 À la première station, pensez à vérifier la pression du pneu.
- Voilà, en vingt minutes c'était réglé.
- Bonne route et soyez prudents.
""",
)

PLANT = talk(
    """
Choisir un pot plus grand
Arroser la veille
Sortir la plante de son pot
Démêler les racines
Mettre des billes d'argile au fond
Remplir de terreau
Couper les fleurs fanées
Tasser et arroser
""",
    """
- Coucou, c'est Sandrine, et je suis sur mon balcon.
- Vous m'avez écrit très nombreux après la dernière vidéo.
- Il y avait surtout des questions sur mon ficus, le pauvre.
1 Pour le pot, j'en ai choisi un à peine plus grand, deux doigts de plus.
- Il vient d'une brocante, il m'a coûté trois euros.
2 Je l'ai arrosée hier soir, la terre est encore humide.
- Mon voisin d'en face me regarde bizarrement.
3 Je penche la plante et je la sors délicatement de son vieux pot.
3 Si elle ne veut pas sortir, on tapote un peu sur les côtés.
- Oh là là, ça fait longtemps qu'elle attendait ça.
4 Avec les doigts, je démêle les racines qui tournent en rond.
- On n'est pas obligé de mettre des gants, moi j'adore ça.
5 Au fond je mets une couche de billes d'argile, pour que l'eau s'écoule.
- On peut aussi prendre des cailloux du jardin.
- Le chat vient inspecter les travaux.
6 Je remplis tout autour avec du terreau neuf.
- J'en ai partout, tant pis, je balaierai après.
8 Enfin je tasse bien avec les mains et j'arrose généreusement.
- Elle a déjà meilleure mine, non ?
- Je vous embrasse et à très vite.
""",
)

PAINT = talk(
    """
Protéger le sol avec une bâche
Reboucher les trous
Poncer le mur
Dépoussiérer
Appliquer la sous-couche
Peindre les angles au pinceau
Poser le papier peint
Passer la deuxième couche au rouleau
Nettoyer les outils
""",
    """
- Bonjour, bonjour, on attaque enfin la chambre du petit.
- Ça fait six mois que j'en parle, il était temps.
- On a choisi un bleu très doux, presque gris.
1 D'abord je déroule une bâche pour bien protéger le parquet.
- Mon propriétaire ne me le pardonnerait jamais.
2 Avec l'enduit et une spatule, je rebouche tous les petits trous.
2 Celui-là est plus profond, je le rebouche en deux fois.
- On se demande ce qu'ils accrochaient, les anciens locataires.
3 Quand c'est sec, je ponce toute la surface du mur.
- Ouvrez bien les fenêtres, sinon vous allez tousser.
4 Puis un coup d'aspirateur et un chiffon humide pour enlever la poussière.
- Petite pause, j'ai préparé des sandwichs.
5 J'applique une sous-couche blanche, ça évite les taches.
- C'est la partie la plus ennuyeuse, mettez de la musique.
- Il faut attendre jusqu'à demain.
6 Je commence par les angles, que je peins avec un petit pinceau.
- Je tire la langue quand je me concentre, désolée.
8 Ensuite, avec le rouleau, je passe la première puis la deuxième couche.
- C'est exactement la couleur que je voulais.
9 À la fin on nettoie les pinceaux et le rouleau à l'eau tiède.
- Demain on remet les meubles.
- Merci d'avoir regardé jusqu'au bout.
""",
)

GERMAN = {"bread": BREAD, "tire": TIRE, "shelf": SHELF, "coffee": COFFEE}
FRENCH = {"crêpes": CREPES, "wheel": WHEEL, "plant": PLANT, "paint": PAINT}
